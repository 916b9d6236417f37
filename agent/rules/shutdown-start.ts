/**
 * How the agent makes sure that the system will wait for it, by platform.
 * Source: start in pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go and _windows.go, systemd/inhibit_linux.go.
 */
import { formatGoDuration } from './go-duration.ts';

export type DelayDecision =
  | { readonly kind: 'enough' }
  /** Ask for this much, then read again what is granted. */
  | { readonly kind: 'raise'; readonly delayMs: number };

/** A delay is never lowered. */
export const delayDecision = (requestedMs: number, grantedMs: number): DelayDecision =>
  requestedMs > grantedMs ? { kind: 'raise', delayMs: requestedMs } : { kind: 'enough' };

export interface ShutdownPlatform {
  /** Between readings of the delay after it was raised; one reading more than waits. */
  readonly rereadWaitsMs: readonly number[];
  readonly tooShort: (requestedMs: number, grantedMs: number) => string;
  readonly detected: string;
  readonly cancelled: string;
  /** Whether the watch is begun anew when it ends. */
  readonly restarts: boolean;
}

const CANCELLED = 'Shutdown manager detected shutdown cancellation';

export const LINUX: ShutdownPlatform = {
  rereadWaitsMs: [100, 200, 400, 800],
  tooShort: (requestedMs, grantedMs) =>
    `node shutdown manager was timed out after 5 attempts waiting for logind InhibitDelayMaxSec to update to ${formatGoDuration(requestedMs)} (ShutdownGracePeriod), current value is ${formatGoDuration(grantedMs)}`,
  detected: 'Shutdown manager detected shutdown event',
  cancelled: CANCELLED,
  restarts: true,
};

export const WINDOWS: ShutdownPlatform = {
  rereadWaitsMs: [],
  tooShort: (requestedMs, grantedMs) =>
    `node shutdown manager was unable to update the preshutdown time-out of the service to ${formatGoDuration(requestedMs)} (ShutdownGracePeriod), current value is ${formatGoDuration(grantedMs)}`,
  detected: 'Shutdown manager detected preshutdown event',
  cancelled: CANCELLED,
  restarts: false,
};

/** logind's drop-in file: whole seconds, read after the distribution's own. */
export const logindDropIn = (delayMs: number): string =>
  `# Time for the pods of this node to end before it goes down.\n[Login]\nInhibitDelayMaxSec=${Math.round(delayMs / 1_000)}\n`;

/** Who holds the shutdown back, as `systemd-inhibit --list` shows it. */
export const INHIBITOR = Object.freeze({
  what: 'shutdown',
  who: 'kubelet',
  why: 'Kubelet needs time to handle node shutdown',
  mode: 'delay',
});

/** What a PrepareForShutdown signal says; undefined when its body is empty or something else than a boolean. */
export function preparingForShutdown(body: readonly unknown[]): boolean | undefined {
  const [preparing] = body;
  return typeof preparing === 'boolean' ? preparing : undefined;
}
