/**
 * How the agent ensures that the system delays a shutdown long enough, and how it reports one.
 * Source: start in pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go and _windows.go, systemd/inhibit_linux.go.
 */
import { formatGoDuration } from '../../shared/kubernetes/go-duration.ts';

export type DelayDecision =
  | { readonly kind: 'enough' }
  /** Request this delay, then read the granted one again. */
  | { readonly kind: 'raise'; readonly delayMs: number };

/** A delay is never lowered. */
export const delayDecision = (requestedMs: number, grantedMs: number): DelayDecision =>
  requestedMs > grantedMs ? { kind: 'raise', delayMs: requestedMs } : { kind: 'enough' };

/** What differs between the systems that announce a shutdown. */
export interface ShutdownRules {
  /** Between readings of the delay after it was raised; one reading more than waits. Milliseconds. */
  readonly rereadWaitsMs: readonly number[];
  /** The log line when the system does not grant the delay. */
  readonly delayTooShort: (requestedMs: number, grantedMs: number) => string;
  /** Message of the Node's event. */
  readonly detected: string;
  /** Whether the watch starts again when it ends. */
  readonly restarts: boolean;
}

/** logind reads its settings some time after it was asked to. */
export const LOGIND_SHUTDOWN: ShutdownRules = {
  rereadWaitsMs: [100, 200, 400, 800],
  delayTooShort: (requestedMs, grantedMs) =>
    `node shutdown manager was timed out after 5 attempts waiting for logind InhibitDelayMaxSec to update to ${formatGoDuration(requestedMs)} (ShutdownGracePeriod), current value is ${formatGoDuration(grantedMs)}`,
  detected: 'Shutdown manager detected shutdown event',
  restarts: true,
};

/** The service control manager of Windows changes the time-out at once, and announces a shutdown once. */
export const PRESHUTDOWN: ShutdownRules = {
  rereadWaitsMs: [],
  delayTooShort: (requestedMs, grantedMs) =>
    `node shutdown manager was unable to update the preshutdown time-out to ${formatGoDuration(requestedMs)} (ShutdownGracePeriod), current value is ${formatGoDuration(grantedMs)}`,
  detected: 'Shutdown manager detected preshutdown event',
  restarts: false,
};

/** Message of the Node's event. */
export const SHUTDOWN_CANCELLED = 'Shutdown manager detected shutdown cancellation';

/** logind's drop-in file: whole seconds, read after the distribution's own. */
export const logindDropIn = (delayMs: number): string =>
  `# Time to terminate the pods of this node before it shuts down.\n[Login]\nInhibitDelayMaxSec=${Math.round(delayMs / 1_000)}\n`;

/** What `systemd-inhibit` is called with. */
export interface Inhibitor {
  readonly what: 'shutdown' | 'sleep';
  readonly who: string;
  readonly why: string;
  readonly mode: 'delay';
}

/** The inhibitor lock, as `systemd-inhibit --list` shows it. */
export const INHIBITOR: Inhibitor = Object.freeze({
  what: 'shutdown',
  who: 'kubelet',
  why: 'Kubelet needs time to handle node shutdown',
  mode: 'delay',
});

/** Content of a PrepareForShutdown signal; undefined if the body is empty or not a boolean. */
export function preparingForShutdown(body: readonly unknown[]): boolean | undefined {
  const [preparing] = body;
  return typeof preparing === 'boolean' ? preparing : undefined;
}
