/** Metrics of volumes. The first has upstream's name. */

/** Volumes detached without a confirmation that it is safe, by `reason`: timeout, out-of-service. */
export const FORCED_DETACHES = 'attachdetach_controller_forced_detaches';
/** Volumes that no pod uses and that are not detached, per pass, by `reason`. */
export const WITHHELD_DETACHES = 'attachdetach_controller_withheld_detaches';
