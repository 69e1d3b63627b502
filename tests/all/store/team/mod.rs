//! The team's store: PostgreSQL and objects, with servers that come and go.

mod faults;
mod network;
mod replicas;
pub(super) mod server;

/// The tests of the store that run on SQLite, on PostgreSQL.
macro_rules! on_postgres {
    ($($module:ident { $($test:ident),* $(,)? })*) => { $(
        mod $module { $(
            #[test]
            fn $test() {
                super::server::on(concat!(stringify!($module), "::", stringify!($test)), super::super::$module::$test);
            }
        )* }
    )* };
}

on_postgres! {
    archive {
        gives_back_what_it_was_given,
        the_same_content_is_stored_once_and_a_grown_one_costs_its_growth,
        a_source_is_streamed_and_one_that_shrinks_leaves_nothing,
        another_project_is_refused_and_another_user_finds_nothing,
        handles_that_are_malformed_or_missing_say_so,
        a_compaction_keeps_what_it_removed,
        the_newest_come_first,
        recall_reads_a_part_and_how_to_read_on,
    }
    audited {
        entries_are_of_their_owner_and_go_by_age,
    }
    care {
        marks_are_of_their_project,
        an_ask_expires_after_a_day,
        lets_go_of_what_is_old_but_not_of_what_a_newer_compaction_holds,
        letting_go_also_takes_superseded_memories,
        what_is_pinned_or_compacted_from_stays,
    }
    chunks {
        a_picture_that_repeats_inside_a_session_is_stored_once,
        a_change_costs_its_place_wherever_it_is,
        an_owner_shares_nothing_with_another,
        what_is_deleted_frees_its_room_and_takes_nothing_from_others,
    }
    found {
        words_of_any_script_and_qualifiers,
        a_secret_is_in_no_passage,
        a_session_that_grew_is_found_once_and_gone_when_it_is_let_go_of,
    }
    memory {
        remembers_lists_and_forgets,
        the_same_again_is_the_same_memory,
        tidy_lets_the_newer_stand,
        what_is_exported_can_be_imported,
    }
    search {
        finds_words_of_any_script,
        without_all_words_some_will_do,
        reaches_as_far_as_it_should,
        finds_messages_summaries_and_memories_too,
        the_same_text_first_a_session_then_an_output_is_found,
        pages_without_gaps_or_repeats,
        shows_the_line_to_read_on_from,
        odd_queries_are_answered_or_refused_never_an_accident,
    }
}
