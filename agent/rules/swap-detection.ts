/** Whether swap is on, and whether the agent may start with it (pkg/kubelet/util/swap, pkg/kubelet/cm). */

/** @param procSwaps text of /proc/swaps, a header and one line per device; undefined if there is no such file */
export const swapIsOn = (procSwaps: string | undefined): boolean =>
  procSwaps !== undefined && procSwaps.trim().split('\n').length > 1;

/** Why the agent may not start; undefined if it may. */
export function swapStartFault(failSwapOn: boolean, procSwaps: string | undefined): string | undefined {
  if (!failSwapOn || procSwaps === undefined || !swapIsOn(procSwaps)) return undefined;
  const devices = procSwaps.trim().split('\n').slice(1);
  const names = devices.map((line) => line.trim().split(/\s+/, 1)[0] ?? '');
  return `running with swap on is not supported, please disable swap or set failSwapOn to false; /proc/swaps lists ${names.join(', ')}`;
}
