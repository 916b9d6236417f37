import { meter } from './meter.ts';

/**
 * Writes what an invocation counted when it ends, well or not. The library's own middleware warns on each invocation
 * that counted nothing, and in steady state most count nothing.
 */
export const publishMetrics = (): { readonly after: () => void; readonly onError: () => void } => ({
  after: meter.publish,
  onError: meter.publish,
});
