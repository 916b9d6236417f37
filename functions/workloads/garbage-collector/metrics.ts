/** Metrics of the garbage collector. */

/** Objects that were deleted because their owners no longer exist, by kind. */
export const COLLECTED = 'gc_collected_total';
