//! Enums whose variants have names.

/// Declares an enum and, from the text behind each variant, its name: `ALL` variants in order, `name` and `find`.
///
/// The name is what JSON, the database, the command line or a table shows; where an enum is serialised, its `rename_all`
/// gives the same.
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

        // Not every such enum is listed and looked up.
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
