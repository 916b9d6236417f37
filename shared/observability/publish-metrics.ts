import { metrics } from './meter.ts';

/**
 * Writes what an invocation counted when it ends, well or not. The library's own middleware warns on each invocation
 * that counted nothing, and in steady state most count nothing.
 */
export function publishMetrics(): { readonly after: () => void; readonly onError: () => void } {
  const publish = (): void => {
    if (metrics.hasStoredMetrics()) metrics.publishStoredMetrics();
  };
  return { after: publish, onError: publish };
}
