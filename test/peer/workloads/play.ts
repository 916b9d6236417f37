/** Plays the steps on control planes and looks at what they hold after each. */
import type { ApiClient } from '../../../demo/fleet/api-client.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { readKubeconfig } from '../../support/kubeconfig.ts';
import { type Kubectl, makePlace, runKubectl } from '../../support/kubectl.ts';
import { answerOf } from '../command.ts';
import { normalise } from '../normalise.ts';
import { compareSnapshots, type Difference, explained } from './compare.ts';
import type { Machines } from './machines.ts';
import { listAll, type Seen, type Snapshot, see } from './snapshot.ts';
import type { Step } from './steps.ts';

export const NAMESPACE = 'peer';

export interface Side {
  readonly client: ApiClient;
  readonly kubeconfig: string;
  readonly machines: Machines;
  /** What `CRON` and `BUDGET` of the manifests stand for. */
  readonly versions: Readonly<Record<'CRON' | 'BUDGET', string>>;
}

/** What one side answered and held. */
export interface Played {
  readonly output: string;
  readonly exitCode: number | undefined;
  readonly snapshot: Snapshot;
}

export interface PlayedStep {
  readonly name: string;
  readonly upstream: Played;
  readonly ours: Played;
  readonly differences: readonly Difference[];
}

const LOOK_MS = 500;
/** An equal state counts when neither side changed for so long. */
const STABLE_MS = 2_000;
/** Unequal states count when neither side changed for so long: more than a tick. */
const UNEQUAL_STABLE_MS = 8_000;
const WITHIN_SECONDS = 60;

export function nameOf({ kubectl, apply = [], machines }: Step): string {
  if (kubectl !== undefined) return `kubectl ${kubectl.join(' ')}`;
  if (machines === 'restore') return 'all machines continue';
  if (machines !== undefined) return `the machine of ${machines.silenceThatOf} falls silent`;
  const names = apply.map((object) => {
    const { kind, metadata } = object as { kind: string; metadata: { name: string } };
    return `${kind} ${metadata.name}`;
  });
  return `kubectl apply of ${names.join(', ')}`;
}

export async function detectVersions(client: ApiClient): Promise<Side['versions']> {
  const newest = async (group: string): Promise<string> => {
    const { body } = await answerOf(client, { method: 'GET', path: `/apis/${group}/v1` }, [200, 404]);
    const { resources = [] } = body as { resources?: readonly { name: string }[] };
    const has = resources.some(({ name }) => name === 'cronjobs' || name === 'poddisruptionbudgets');
    return has ? `${group}/v1` : `${group}/v1beta1`;
  };
  return { CRON: await newest('batch'), BUDGET: await newest('policy') };
}

/** Plays one step on both sides, and waits until they hold the same or nothing changes any more. */
export async function playOnBoth(step: Step, upstream: Side, ours: Side, kubectl: Kubectl): Promise<PlayedStep> {
  const before = await Promise.all([seen(upstream), seen(ours)]);
  const answers = await Promise.all([act(step, upstream, kubectl), act(step, ours, kubectl)]);
  const after = await settled(step, upstream, ours);
  const played = answers.map(({ output, exitCode }, index): Played => {
    const text = after[index]!.inText(before[index]!.inText(output));
    return { output: comparable(text, step), exitCode, snapshot: after[index]!.snapshot };
  });
  const [left, right] = played as [Played, Played];
  return { name: nameOf(step), upstream: left, ours: right, differences: differencesOf(nameOf(step), left, right) };
}

export function differencesOf(name: string, upstream: Played, ours: Played): readonly Difference[] {
  const differences = [...compareSnapshots(upstream.snapshot, ours.snapshot)];
  if (upstream.exitCode !== ours.exitCode) {
    differences.push(explained(name, 'exit code', String(upstream.exitCode), String(ours.exitCode)));
  }
  if (upstream.output !== ours.output) differences.push(explained(name, 'output', upstream.output, ours.output));
  return differences;
}

const seen = async ({ client }: Side): Promise<Seen> => see(await listAll(client, NAMESPACE));

async function settled(step: Step, upstream: Side, ours: Side): Promise<readonly [Seen, Seen]> {
  const deadlineMs = performance.now() + 1_000 * (step.withinSeconds ?? WITHIN_SECONDS);
  let last = '';
  let sinceMs = performance.now();
  for (;;) {
    const now = await Promise.all([seen(upstream), seen(ours)]);
    const state = JSON.stringify(now.map(({ snapshot }) => snapshot));
    if (state !== last) sinceMs = performance.now();
    last = state;
    const stableMs = performance.now() - sinceMs;
    const happened = step.until === undefined || now.every(({ snapshot }) => step.until!(snapshot));
    const areEqual = (): boolean =>
      compareSnapshots(now[0].snapshot, now[1].snapshot).every(({ reason }) => reason !== undefined);
    if (happened && (stableMs >= UNEQUAL_STABLE_MS || (stableMs >= STABLE_MS && areEqual()))) return now;
    if (performance.now() >= deadlineMs) return now;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function act(
  step: Step,
  side: Side,
  kubectl: Kubectl,
): Promise<{ readonly output: string; readonly exitCode: number | undefined }> {
  if (step.machines !== undefined) {
    await changeMachines(step.machines, side);
    return { output: '', exitCode: 0 };
  }
  const stdin = step.apply?.map((object) => JSON.stringify(withVersions(object, side))).join('\n');
  const args = step.kubectl ?? ['apply', '-f', '-'];
  const place = makePlace();
  try {
    const { stdout, stderr, exitCode } = await runKubectl(kubectl, ['-n', NAMESPACE, ...args], {
      kubeconfig: side.kubeconfig,
      place,
      timeoutMs: 150_000,
      ...(stdin !== undefined && { stdin }),
    });
    const { url } = readKubeconfig(side.kubeconfig);
    const surroundings = { serverUrl: url, workDir: place.work, homeDir: place.home };
    return { output: normalise(`${stdout}${stderr}`, surroundings), exitCode };
  } finally {
    place.remove();
  }
}

function withVersions(object: object, { versions }: Side): object {
  const { apiVersion } = object as { apiVersion: string };
  return apiVersion === 'CRON' || apiVersion === 'BUDGET' ? { ...object, apiVersion: versions[apiVersion] } : object;
}

async function changeMachines(change: NonNullable<Step['machines']>, { client, machines }: Side): Promise<void> {
  if (change === 'restore') {
    machines.restoreAll();
    return;
  }
  const path = `/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=app%3D${change.silenceThatOf}`;
  const { body } = await answerOf(client, { method: 'GET', path });
  const [pod] = (body as { items: readonly KubePod[] }).items;
  machines.silence(pod?.spec?.nodeName ?? '');
}

function comparable(text: string, { compareOutput, kubectl = [] }: Step): string {
  if (compareOutput === 'none') return '';
  // Objects are deleted in the order of their names, which have a hash.
  if (kubectl[0] === 'delete') return text.split('\n').toSorted().join('\n');
  return compareOutput === 'last line' ? (text.trimEnd().split('\n').at(-1) ?? '') : text;
}
