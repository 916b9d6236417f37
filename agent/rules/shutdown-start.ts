/**
 * How the agent makes sure that logind waits for it.
 * Source: start in pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go, systemd/inhibit_linux.go.
 */
import { formatGoDuration } from './go-duration.ts';

export type DelayDecision =
  | { readonly kind: 'enough' }
  /** Ask for this much, then read again what is granted. */
  | { readonly kind: 'raise'; readonly delayMs: number };

/** A delay is never lowered. */
export const delayDecision = (requestedMs: number, grantedMs: number): DelayDecision =>
  requestedMs > grantedMs ? { kind: 'raise', delayMs: requestedMs } : { kind: 'enough' };

/** Between readings of the delay after it was raised; one reading more than waits. */
export const DELAY_REREAD_WAITS_MS: readonly number[] = [100, 200, 400, 800];

/** What is logged when logind does not grant the delay. */
export const delayTooShort = (requestedMs: number, grantedMs: number): string =>
  `node shutdown manager was timed out after 5 attempts waiting for logind InhibitDelayMaxSec to update to ${formatGoDuration(requestedMs)} (ShutdownGracePeriod), current value is ${formatGoDuration(grantedMs)}`;

/** Messages of the Node's events. */
export const SHUTDOWN_DETECTED = 'Shutdown manager detected shutdown event';
export const SHUTDOWN_CANCELLED = 'Shutdown manager detected shutdown cancellation';

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
