/** The stories of workloads fail when the rule that they are about is broken. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { Item, TransactWrite } from '../../shared/store/item-store.ts';
import { parseScenario } from '../../simulation/parse-scenario.ts';
import { recordedMemoryStore } from '../../simulation/recorded-store.ts';
import { runScenario } from '../../simulation/run-scenario.ts';
import { seenThrough, textOf } from '../simulation/planted-bugs.ts';
import { freed, withOpenGate, withoutTotalDisruption } from '../simulation/planted-workload-bugs.ts';

const folder = fileURLToPath(new URL('../../scenarios/', import.meta.url));

/** Objects of a resource, and their entries in the change log, are read with another text. */
const replaced =
  (resource: string, text: string, by: string) =>
  (item: Item): Item => {
    if (String(item['pk']).split('#')[1] !== resource) return item;
    const texts = (['o', 'e'] as const).filter((name) => item[name] !== undefined);
    const changed = texts.map((name) => [name, textOf({ o: item[name]! }).replaceAll(text, by)]);
    return { ...item, ...Object.fromEntries(changed) };
  };

const impatient = (item: Item): Item => {
  if (!String(item['pk']).startsWith('o#pods#') || item['o'] === undefined) return item;
  const pod = JSON.parse(textOf(item)) as KubePod;
  return { ...item, o: JSON.stringify({ ...pod, spec: { ...pod.spec, tolerations: [] } }) };
};

interface Story {
  readonly file: string;
  readonly bug: string;
  readonly read?: (item: Item) => Item;
  readonly transact?: (writes: readonly TransactWrite[]) => readonly TransactWrite[];
  /** The first thing that is not as expected. */
  readonly fails: RegExp;
}

const STORIES: readonly Story[] = [
  {
    file: 'dead-node-is-replaced.yaml',
    bug: 'tolerations are ignored',
    read: impatient,
    fails: /^110 deployment default\/\w+ (pods|terminating|ready): /,
  },
  {
    file: 'zone-dark-with-spread.yaml',
    bug: 'a required spread is treated as a preferred one',
    read: replaced('pods', '"DoNotSchedule"', '"ScheduleAnyway"'),
    fails: /^170 deployment default\/strict ready: wanted 2, found 3$/,
  },
  {
    file: 'budget-and-drain.yaml',
    bug: 'the budget is ignored',
    read: replaced('poddisruptionbudgets', '"minAvailable":3', '"minAvailable":0'),
    fails: /^31 evict default\/web-1 : wanted refused with 429, found /,
  },
  {
    file: 'pod-that-must-not-run-twice.yaml',
    bug: 'pods that must not run twice are replaced as others',
    read: replaced('pods', 'nodekeeper.dev/offline-stop-after', 'example.com/other'),
    fails: /^150 deployment default\/press ready: wanted 0, found 2$/,
  },
  {
    file: 'gate-holds-workloads.yaml',
    bug: 'the gate is ignored',
    read: withOpenGate,
    fails: /^180 deployment default\/web terminating: wanted 0, found 1$/,
  },
  {
    file: 'total-disruption-holds-workloads.yaml',
    bug: 'total disruption is ignored',
    read: withoutTotalDisruption,
    fails: /^150 deployment default\/web /,
  },
  {
    file: 'stateful-pod-on-silent-node.yaml',
    bug: 'an eviction frees the name of the pod',
    transact: (writes) => writes.map((write) => freed(write)),
    fails: /^150 statefulset default\/db /,
  },
  {
    file: 'rollout-during-outage.yaml',
    bug: 'a rollout ignores maxUnavailable',
    read: replaced('deployments', '"maxUnavailable":1', '"maxUnavailable":"100%"'),
    fails: /^111 deployment default\/web /,
  },
];

async function failuresOf({ file, read, transact }: Story): Promise<readonly string[]> {
  const parsed = parseScenario(readFileSync(`${folder}${file}`, 'utf8'), file);
  if (parsed.kind !== 'ok') throw new Error(file);
  const store = recordedMemoryStore();
  const planted = seenThrough({ ...(read && { read }), ...(transact && { transact }) }).items!;
  const items = planted(store.items, undefined as never);
  const { failures } = await runScenario(parsed.scenario, { store: { ...store, items }, seed: 1 });
  return failures.map(
    ({ atMs, subject, field, wanted, found }) =>
      `${atMs / 1_000} ${subject} ${field}: wanted ${wanted}, found ${found}`,
  );
}

describe('a story of workloads', () => {
  it.each(STORIES)('$file fails when $bug', async (story) => {
    expect((await failuresOf(story))[0]).toMatch(story.fails);
  });
});
