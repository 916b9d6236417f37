import { meter } from './meter.ts';

/**
 * Writes the metrics of an invocation when it completes or fails. The library's own middleware warns on each invocation
 * without metrics, and in steady state most have none.
 */
export const publishMetrics = (): { readonly after: () => void; readonly onError: () => void } => ({
  after: meter.publish,
  onError: meter.publish,
});
