/** Watches answered as long polls, because no padding makes the function URL deliver a change; absent: none. */
export const WATCHES_AS_LONG_POLLS = 'watches_as_long_polls';
