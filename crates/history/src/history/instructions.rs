//! Instructions that a client puts into a session.

use crate::{Message, Role};

impl Message {
    /// The tag with which a client's instructions begin: `<collaboration_mode>`. The newest instructions of a tag replace
    /// the older ones.
    pub fn instruction_tag(&self) -> Option<&str> {
        let text = self.texts().next().filter(|_| self.role == Role::System)?.as_str();
        let end = text.strip_prefix('<')?.find('>')?;
        Some(&text[..end + 1])
    }
}
