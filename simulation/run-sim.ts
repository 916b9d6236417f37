/**
 * The real code on virtual time under faults that follow from one seed: heartbeat, API, streams and controllers over
 * the memory store. Each invocation has a process that may be slow, wrong about the time, or killed. The laws are
 * checked after every step. The first broken law ends the run. The same options replay it exactly.
 */

import { PROBE_LEASE } from '../shared/access/probe-identity.ts';
import { nodeHealthOf } from '../shared/fleet/nodes/health.ts';
import type { Item, ItemKey } from '../shared/store/item-store.ts';
import type { ItemChange } from '../shared/store/memory/item-changes.ts';
import { decidesNothingTwice } from './laws/idempotence.ts';
import type { Happened, Writer } from './laws/truth.ts';
import { usesWorkloads } from './parts.ts';
import { createChecks, type SimChecks } from './sim-checks.ts';
import { lineOf } from './sim-log.ts';
import type { SimOptions, SimResult } from './sim-options.ts';
import { type SimSetup, START_MS, setUpSim } from './sim-setup.ts';
import { startWorld, type World } from './start-world.ts';

/** How often the laws look for what is late. Milliseconds. */
const LOOK_EVERY_MS = 500;
const EXPIRE_EVERY_MS = 1_800_000;

export async function runSim(options: SimOptions): Promise<SimResult> {
  const setup = setUpSim(options);
  const checks = createChecks(setup);
  const world = startWorld(setup, checks);
  try {
    await world.story.begin();
    await setup.time.run(setup.endMs, stepChecks(setup, checks, world));
  } finally {
    await setup.end();
  }
  const { seed, nodes, zones, parts, chosenPolicy: policy, time, plan } = setup;
  return {
    seed,
    nodes,
    zones,
    policy,
    parts,
    nodeHours: (nodes * (time.nowMs() - START_MS)) / 3_600_000,
    steps: time.steps(),
    faults: plan.counts,
    marks: checks.coverage.hits,
    failure: checks.state.failure,
  };
}

/** What happens after each step. It returns whether the run ends. */
function stepChecks(setup: SimSetup, checks: SimChecks, world: World): () => boolean | Promise<boolean> {
  const { time } = setup;
  const { state, laws, context } = checks;
  const look = setup.random('look');
  let lookedAtMs = START_MS;
  let expiredAtMs = START_MS;
  const isOver = (): boolean => state.failure !== undefined;

  return () => {
    const nowMs = time.nowMs();
    if (state.writer !== undefined) publishChanges(setup, checks, world, state.writer);
    if (nowMs - lookedAtMs >= LOOK_EVERY_MS) {
      lookedAtMs = nowMs;
      for (const law of laws) law.onMoment?.();
      if (nowMs - expiredAtMs >= EXPIRE_EVERY_MS) {
        expiredAtMs = nowMs;
        const expiring = setup.expire(nowMs / 1_000);
        if (expiring !== undefined) return expiring.then(isOver);
      }
    }
    const beganAtMs = state.finishedTickBeganAtMs;
    state.finishedTickBeganAtMs = undefined;
    // The last write of the tick was in this step, too: it is counted above.
    if (beganAtMs !== undefined && state.othersWroteAtMs < beganAtMs) {
      if (!isOver() && context.calmSinceMs() !== undefined) return decideAgain(setup, checks, look).then(isOver);
    }
    return isOver();
  };
}

/** Shows what a step wrote to streams, truth, laws and log. */
function publishChanges(setup: SimSetup, checks: SimChecks, { streams }: World, by: Writer): void {
  const { time, tables, recent, view, parts } = setup;
  const { state, watches, cidrs, volumes, bindings, truth, laws } = checks;
  state.writer = undefined;
  const changes = recent.take(time.nowMs());
  if (changes.length === 0) return;
  const isOther = by.name !== 'node-monitor';
  const isNew = (change: ItemChange): boolean =>
    endsPromise(change) || (parts.includes('witnesses') && isMarked(change));
  if (changes.some((change) => (isOther ? isReadByNodeMonitor(change.key) : isNew(change)))) {
    state.othersWroteAtMs = time.nowMs();
  }
  view.refresh();
  watches.learn(changes);
  checks.hubs.learn(changes);
  checks.shares.learn(changes);
  cidrs.learn(changes, by);
  if (parts.includes('volumes')) volumes.learn(changes);
  if (parts.includes('scheduling') || usesWorkloads(parts)) bindings.learn(changes, by);
  if (usesWorkloads(parts)) checks.learnWorkloads(changes, by);
  streams.feed(changes);
  for (const happened of truth.learn(changes, by)) {
    recordHappened(setup, checks, happened, by);
    for (const law of laws) law.onHappened?.(happened, by);
  }
  for (const table of ['health', 'objects', 'control'] as const) {
    tables.forgetChanges(table, Number.MAX_SAFE_INTEGER);
  }
}

/** What follows from silence and taints. */
const DECIDED: ReadonlySet<Happened['kind']> = new Set(['ready', 'tainted', 'untainted', 'podEnds', 'nodeGone']);

function recordHappened(setup: SimSetup, checks: SimChecks, happened: Happened, by: Writer): void {
  const { options, time, hasWrongClock, isPoisoned } = setup;
  const { coverage, log, state } = checks;
  coverage.onHappened(happened, by);
  const line = lineOf(happened, by);
  if (line === undefined) return;
  log.add(line.subject, line.text);
  if (by.who !== '' || !DECIDED.has(happened.kind)) return;
  const ofNode = 'node' in happened ? happened.node.name : 'pod' in happened ? happened.pod.nodeName : '';
  options.onDecision?.({ atMs: time.nowMs() - START_MS, ...line, isOfWrongClock: hasWrongClock(ofNode) });
  if ('node' in happened && hasWrongClock(happened.node.name)) coverage.hit(`clock:${happened.kind}`);
  if ('pod' in happened && hasWrongClock(happened.pod.nodeName)) coverage.hit('clock:podEnds');
  if (state.poisonedSinceMs !== undefined && !isPoisoned(ofNode)) coverage.hit(`poison:${happened.kind}`);
}

/** What decisions of node-monitor rest on: digests of nodes, zones, queue. The Lease of its own probe is no node. */
const isReadByNodeMonitor = ({ table, pk, sk }: ItemKey): boolean =>
  (table === 'health' && sk !== PROBE_LEASE) || (table === 'control' && pk === 'fleet');

/**
 * A tick ends promises of silence after it has decided (node-monitor/silence-watch.ts). Its next tick decides by them,
 * as if another controller had ended them.
 */
const endsPromise = ({ key, oldImage, newImage }: ItemChange): boolean =>
  key.table === 'health' && endOfSilenceMs(oldImage) !== endOfSilenceMs(newImage);
/** A look between two ticks marks a node that the tick has not decided on. */
const isMarked = ({ key, oldImage, newImage }: ItemChange): boolean =>
  key.table === 'health' && markedAtMs(oldImage) !== markedAtMs(newImage);
const markedAtMs = (row: Item | undefined): number | undefined =>
  row === undefined ? undefined : nodeHealthOf(row)?.markedAtMs;
const endOfSilenceMs = (row: Item | undefined): number | undefined =>
  row === undefined ? undefined : nodeHealthOf(row)?.silenceEndedAtMs;

/** L10, while one policy alone is in use. */
async function decideAgain(setup: SimSetup, checks: SimChecks, look: () => number): Promise<void> {
  const { state, coverage, fail } = checks;
  const [only, ...others] = state.functions!.policies();
  if (only === undefined || others.length > 0) return;
  const broken = await decidesNothingTwice(setup.tables, only, look, coverage.hit, setup.isPoisoned);
  if (broken !== undefined) fail(broken);
}
