//! Enums whose variants have names.

/// Declares an enum whose variants have names (`Variant = "name"`), with `ALL` variants in order, `name` and
/// `find`.
///
/// The name is what JSON, the database, the command line or a table shows; if an enum is serialized, its
/// `rename_all` gives the same.
#[macro_export]
macro_rules! named {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $enum:ident {
            $($(#[$of_variant:meta])* $variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $enum {
            $($(#[$of_variant])* $variant,)*
        }

        // Not every such enum uses all of these.
        #[allow(dead_code)]
        impl $enum {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The variant of that name.
            pub fn find(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|it| it.name() == name)
            }
        }
    };
}
