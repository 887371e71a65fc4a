//! Runs the models, in orders that shuttle chooses at random, and in those with few changes of the
//! thread, in which most faults are found.

use shuttle::{check_pct, check_random};

/// The orders of each kind.
const ORDERS: usize = 5000;

/// The changes of the thread in an order.
const CHANGES: usize = 3;

fn check(model: fn()) {
    check_random(model, ORDERS);
    check_pct(model, ORDERS, CHANGES);
}

#[test]
fn output_in_the_ring_arrives_whole_and_wakes_its_reader() {
    check(isolet_models::output_arrives);
}

#[test]
fn commands_are_answered_whoever_reads_and_whoever_wakes() {
    check(isolet_models::commands_are_answered);
}

#[test]
fn a_wake_up_is_kept_during_another_wait_on_the_same_thread() {
    check(isolet_models::wakes_are_kept);
}

#[test]
fn messages_arrive_however_the_isolate_waits() {
    check(isolet_models::messages_arrive);
    check(isolet_models::messages_of_a_session_that_stays_arrive);
}
