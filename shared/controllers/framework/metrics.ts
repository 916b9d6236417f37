/** Metrics that several controllers count. */

/** Objects that a controller could not write because they are too large, in any function; absent: none. */
export const OBJECTS_NOT_WRITTEN = 'objects_not_written_total';
/** Stream records given up because their work can never succeed; ticks do most of it later. Absent: none. */
export const RECORDS_GIVEN_UP = 'stream_records_given_up_total';
/** Events of the cluster that the event bus did not accept, after all tries; absent: none. */
export const EVENTS_NOT_SENT = 'events_not_sent_total';

/** Dimension of a metric by zone. CloudWatch accepts no empty value. */
export const zoneDimension = (zone: string): { zone: string } => ({ zone: zone === '' ? '(none)' : zone });
