/** `nodekeeper-agent doctor` on Windows: whether a shutdown of the machine waits for its pods. */
import { type Finding, failed, ok, warning } from './finding.ts';
import { requestedDelayMs, type ShutdownSettings, shutdownBuckets } from './shutdown-settings.ts';
import type { ShutdownTimes } from './shutdown-state.ts';

export type PreshutdownReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'unreadable'; readonly message: string }
  | {
      readonly kind: 'service';
      readonly name: string;
      readonly timeoutMs: number;
      readonly dependencies: readonly string[];
      readonly order: readonly string[];
    };

export interface ShutdownHistory {
  /** Of the state file; undefined: there is none. */
  readonly last: ShutdownTimes | undefined;
  /** When the machine started. Milliseconds since the Unix epoch. */
  readonly bootedAtMs: number;
}

const CHECK = 'shutdown';

export function preshutdownFindings(settings: ShutdownSettings, read: PreshutdownReading): Finding[] {
  const requestedMs = requestedDelayMs(shutdownBuckets(settings));
  if (requestedMs === 0) {
    const todo = 'Set shutdownGracePeriod, such as 40s, in KubeletConfiguration.';
    return [warning(CHECK, 'a shutdown of the machine kills pods without their grace period', todo)];
  }
  if (read.kind === 'absent') {
    return [failed(CHECK, 'the agent is no service', 'Install it: nodekeeper-agent install, as administrator.')];
  }
  if (read.kind === 'unreadable') return [failed(CHECK, read.message, 'Run this as administrator.')];
  return [timeout(requestedMs, read.timeoutMs), ...order(read)];
}

function timeout(requestedMs: number, timeoutMs: number): Finding {
  if (timeoutMs >= requestedMs) return ok(CHECK, `Windows waits ${timeoutMs / 1_000} s for the service`);
  const message = `Windows waits ${timeoutMs / 1_000} s, ${requestedMs / 1_000} s are configured`;
  return warning(CHECK, message, 'Start the service: it raises its preshutdown time-out.');
}

function order({ name, dependencies, order: names }: Extract<PreshutdownReading, { kind: 'service' }>): Finding[] {
  if (dependencies.length === 0) return [];
  const placeOf = (service: string): number => names.findIndex((each) => each.toLowerCase() === service.toLowerCase());
  const own = placeOf(name);
  const isFirst = own >= 0 && dependencies.every((each) => placeOf(each) > own);
  if (isFirst) return [ok(CHECK, `${name} is before ${dependencies.join(', ')} in PreshutdownOrder`)];
  const message = `${name} is not before ${dependencies.join(', ')} in PreshutdownOrder`;
  return [warning(CHECK, message, 'Start the service: it adds itself to the order.')];
}

/** What `--windows-shutdown` adds: whether the last shutdown of this machine went as it should. */
export function lastShutdown({ last, bootedAtMs }: ShutdownHistory): Finding {
  const check = 'last shutdown';
  const todo = 'Restart the machine (shutdown /r /t 0) while a pod runs, and repeat this.';
  if (last?.startedAtMs === undefined) return warning(check, 'none is recorded', todo);
  const startedAt = new Date(last.startedAtMs).toISOString();
  if (last.endedAtMs === undefined) {
    return failed(check, `began at ${startedAt}, and Windows did not wait for its end`, 'Compare the time-out above.');
  }
  const seconds = (last.endedAtMs - last.startedAtMs) / 1_000;
  const message = `pods were terminated at ${startedAt}, in ${seconds} s`;
  return last.endedAtMs <= bootedAtMs
    ? ok(check, `${message}, before this start of the machine`)
    : warning(check, `${message}, after this start of the machine`, todo);
}
