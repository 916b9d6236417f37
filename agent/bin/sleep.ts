/**
 * nodekeeper-agent sleep --for TIME [--reason TEXT] [--config FILE] [--FLAG VALUE …]
 *
 * Promises that this machine is silent until then, and does nothing else: the machine may suspend, reboot or leave its
 * network afterwards.
 */
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import type { KubeApi } from '../ports/kube-api.ts';
import { answeredWith, describeAnswer } from '../rules/kube-answer.ts';
import { durationSeconds, promiseOfSilence } from '../rules/planned-silence.ts';

export const SLEEP_USAGE = `Usage: nodekeeper-agent sleep --for TIME [--reason TEXT] [--config FILE] [--FLAG VALUE …]

  --for TIME      such as 90s, 30m, 2h or 1d; at most maxPlannedSilenceSeconds of the cluster's policy
  --reason TEXT   for people
`;

export interface SleepCommand {
  readonly seconds: number;
  readonly reason: string;
  /** The arguments of the agent itself. */
  readonly rest: readonly string[];
}

/** The command line behind `sleep`; undefined for one without a usable time. */
export function sleepCommand(args: readonly string[]): SleepCommand | undefined {
  const rest = [...args];
  const optionValue = (option: string): string | undefined => {
    const at = rest.indexOf(option);
    return at < 0 ? undefined : rest.splice(at, 2)[1];
  };
  const seconds = durationSeconds(optionValue('--for') ?? '');
  const reason = optionValue('--reason') ?? '';
  return seconds === undefined ? undefined : { seconds, reason, rest };
}

/** Sends the promise once. Returns the line to print, and whether the cluster accepted it. */
export async function promiseSilence(
  api: Pick<KubeApi, 'send'>,
  { nodeName, seconds, reason }: { readonly nodeName: string; readonly seconds: number; readonly reason: string },
  { nowMs, timeoutMs }: { readonly nowMs: number; readonly timeoutMs: number },
): Promise<{ readonly accepted: boolean; readonly line: string }> {
  const untilMs = nowMs + seconds * 1_000;
  const answer = await api.send({ ...promiseOfSilence(nodeName, untilMs, reason), timeoutMs });
  const accepted = answeredWith(answer, 200);
  const line = accepted
    ? `node ${nodeName} is expected to be silent until ${rfc3339(untilMs)}`
    : `node ${nodeName} may not be silent until ${rfc3339(untilMs)}: ${describeAnswer(answer)}`;
  return { accepted, line };
}
