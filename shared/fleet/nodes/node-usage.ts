/**
 * CPU and memory of a machine, as its agent reports them in an annotation of its Lease: no request and no write of
 * their own. The server reads them for metrics.k8s.io.
 *
 * The text is `<CPU cores> <memory bytes> <window seconds> <end of the window, seconds since the epoch>`. It is short,
 * because every tick of node-monitor reads it with its row.
 */
export const USAGE_ANNOTATION = 'nodekeeper.dev/usage';

export interface NodeUsage {
  /** CPU seconds per second, averaged over the window. */
  readonly cpuCores: number;
  /** Working set at the end of the window. */
  readonly memoryBytes: number;
  readonly windowSeconds: number;
  /** End of the window, by the machine's clock. Epoch seconds. */
  readonly atSeconds: number;
}

export const usageText = ({ cpuCores, memoryBytes, windowSeconds, atSeconds }: NodeUsage): string =>
  [cpuCores.toFixed(3), memoryBytes, windowSeconds, atSeconds].join(' ');

const TEXT = /^(\d{1,6}\.\d{3}) (\d{1,15}) (\d{1,6}) (\d{1,11})$/;

/** Undefined for a text that no agent writes. A machine may write anything. */
export function parseUsage(text: string | undefined): NodeUsage | undefined {
  const match = TEXT.exec(text ?? '');
  if (match === null) return undefined;
  const [cpuCores, memoryBytes, windowSeconds, atSeconds] = match.slice(1).map(Number) as [
    number,
    number,
    number,
    number,
  ];
  return { cpuCores, memoryBytes, windowSeconds, atSeconds };
}
