//! Sessions made up with random facts planted at known depths: no common word can satisfy them.
