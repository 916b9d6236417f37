/** Metrics that several controllers count. */

/** Objects that a controller could not write because they are too large, in any function; absent: none. */
export const OBJECTS_NOT_WRITTEN = 'objects_not_written_total';
/** Stream records given up because their work can never succeed, or did not for half an hour. Absent: none. */
export const RECORDS_GIVEN_UP = 'stream_records_given_up_total';
/** Works of stream records that failed and are done later, by a retry or by a tick; counted each time. Absent: none. */
export const RECORD_WORKS_POSTPONED = 'stream_record_works_postponed_total';
/** Events of the cluster that the event bus did not accept, after all tries; absent: none. */
export const EVENTS_NOT_SENT = 'events_not_sent_total';

/** Dimension of a metric by zone. CloudWatch accepts no empty value. */
export const zoneDimension = (zone: string): { zone: string } => ({ zone: zone === '' ? '(none)' : zone });
