import { describe, expect, it } from 'vitest';
import {
  type AgentNode,
  artifactFor,
  holdersAt,
  isHeldBy,
  type NodeReport,
  needsCounts,
  type ReleaseSpec,
  type RolloutState,
  summarize,
  unavailableMax,
  updateVerdict,
  waveOf,
  withoutObsolete,
  withReport,
} from './release-rollout.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);
const AT = '2026-01-01T00:00:00Z';
const artifact = { url: 'https://files.example/agent.mjs', sha256: A, signature: '' };
const spec: ReleaseSpec = {
  version: '2.0.0',
  artifacts: [artifact],
  waves: [{ nodeSelector: { ring: 'canary' } }, {}],
  maxUnavailable: 1,
  isPaused: false,
  allowsDowngrade: false,
};
const OPTIONS = { at: AT, listedUnitsMax: 80_000 };
const EMPTY: RolloutState = { updating: [], failed: [] };
const node = (name: string, version: string, canary = false, isReady = true): AgentNode => ({
  name,
  labels: canary ? { ring: 'canary' } : {},
  version,
  architecture: 'amd64',
  isReady,
});
const report = (over: Partial<NodeReport> = {}): NodeReport => ({
  node: 'a',
  labels: {},
  version: '1.0.0',
  architecture: 'amd64',
  failed: undefined,
  ...over,
});
const claim = (name: string, sha256 = A) => ({ node: name, sha256, since: AT });
const failure = (name: string, sha256 = A) => ({ node: name, sha256, message: 'no heartbeat', at: AT });

describe('the waves of a release', () => {
  it('are the first with a matching selector, and all nodes without waves', () => {
    expect(waveOf(spec, { ring: 'canary' })).toBe(0);
    expect(waveOf(spec, {})).toBe(1);
    expect(waveOf({ waves: [] }, {})).toBe(0);
    expect(waveOf({ waves: [{ nodeSelector: { site: 'x' } }] }, {})).toBeUndefined();
  });

  it('are complete when every Ready node runs the version and none has failed', () => {
    const wave = (fleet: readonly AgentNode[], state = EMPTY) => summarize(spec, fleet, state).wave;
    expect(wave([node('c', '1.0.0', true), node('a', '1.0.0')])).toBe(0);
    expect(wave([node('c', '2.0.0', true), node('a', '1.0.0')])).toBe(1);
    expect(wave([node('c', '1.0.0', true, false), node('a', '1.0.0')])).toBe(1);
    expect(wave([node('c', '1.0.0', true, false)], { updating: [claim('c')], failed: [] })).toBe(0);
    expect(wave([node('c', '1.0.0', true)], { updating: [], failed: [failure('c')] })).toBe(0);
    expect(summarize(spec, [node('c', '2.0.0', true), node('a', '2.0.0')], EMPTY)).toEqual({
      nodes: 2,
      updated: 2,
      skipped: 0,
      skippedNodes: [],
      wave: 2,
    });
  });
});

describe('a node that does not install the release', () => {
  const arm = { ...node('arm', '1.0.0'), architecture: 'arm64' };
  const amdOnly = { ...spec, waves: [], artifacts: [{ ...artifact, architecture: 'amd64' }] };

  it('is skipped with its reason, and its wave is complete without it', () => {
    expect(summarize(amdOnly, [arm, node('a', '2.0.0')], EMPTY)).toEqual({
      nodes: 2,
      updated: 1,
      skipped: 1,
      skippedNodes: [{ node: 'arm', reason: 'no artifact for arm64' }],
      wave: 1,
    });
    expect(summarize(amdOnly, [arm, node('a', '1.0.0')], EMPTY)).toMatchObject({ skipped: 1, wave: 0 });
  });

  it('is not skipped before it reported its architecture, nor when it runs the version', () => {
    const unknown = { ...arm, architecture: undefined };
    expect(summarize(amdOnly, [unknown], EMPTY)).toMatchObject({ skipped: 0, wave: 0 });
    expect(summarize(amdOnly, [{ ...arm, version: '2.0.0' }], EMPTY)).toMatchObject({ skipped: 0, updated: 1 });
  });

  it('runs a newer version, unless the release allows a downgrade', () => {
    const reason = 'runs the newer version 2.0.1, and allowDowngrade is not set';
    const newer = { ...spec, waves: [] };
    const skippedNodes = [{ node: 'n', reason }];
    expect(summarize(newer, [node('n', '2.0.1')], EMPTY)).toMatchObject({ skipped: 1, skippedNodes, wave: 1 });
    const fleet = { nodes: 1, updated: 0, skipped: 0, skippedNodes: [], wave: 0 };
    const verdict = (allowsDowngrade: boolean) =>
      updateVerdict({ ...newer, allowsDowngrade }, report({ version: '2.0.1' }), { state: EMPTY, fleet, ...OPTIONS });
    expect(verdict(false)).toEqual({ kind: 'none', reason });
    expect(verdict(true).kind).toBe('update');
  });

  it('is counted when twenty others are named', () => {
    const fleet = Array.from({ length: 5_000 }, (_, index) => ({ ...arm, name: `arm-${index}` }));
    const { skipped, skippedNodes } = summarize(amdOnly, fleet, EMPTY);
    expect([skipped, skippedNodes.length]).toEqual([5_000, 20]);
  });
});

describe('the verdict for a node', () => {
  const fleet = { nodes: 10, updated: 0, skipped: 0, skippedNodes: [], wave: 1 };
  const verdict = (over: Partial<NodeReport> = {}, state = EMPTY, of = spec) =>
    updateVerdict(of, report(over), { state, fleet, ...OPTIONS });

  it('is the update, with the place of the node', () => {
    expect(verdict()).toEqual({ kind: 'update', artifact, state: { updating: [claim('a')], failed: [] } });
  });

  it('is the same again for a node that was granted', () => {
    const state = { updating: [claim('a')], failed: [] };
    expect(verdict({}, state)).toEqual({ kind: 'update', artifact, state });
  });

  it('is to wait for an earlier wave, for a free place, and while paused', () => {
    const early = updateVerdict(spec, report(), { state: EMPTY, fleet: { ...fleet, wave: 0 }, ...OPTIONS });
    expect(early).toMatchObject({ kind: 'wait', reason: 'an earlier wave is not complete' });
    expect(verdict({}, { updating: [claim('b')], failed: [] })).toMatchObject({ kind: 'wait', waitSeconds: 60 });
    expect(verdict({}, { updating: [], failed: [failure('b')] })).toMatchObject({ kind: 'wait' });
    expect(verdict({}, EMPTY, { ...spec, isPaused: true })).toMatchObject({ kind: 'wait' });
  });

  it('is none for a node that failed, that runs the version, or that has no artifact', () => {
    expect(verdict({ version: '2.0.0' })).toMatchObject({ kind: 'none' });
    expect(verdict({}, { updating: [], failed: [failure('a')] })).toMatchObject({ kind: 'none' });
    expect(verdict({ failed: { sha256: A, message: '' } })).toMatchObject({ kind: 'none' });
    const arm = { ...spec, artifacts: [{ ...artifact, architecture: 'arm64' }] };
    expect(verdict({}, EMPTY, arm)).toMatchObject({ kind: 'none', reason: 'no artifact for amd64' });
    expect(artifactFor(arm, 'arm64')).toMatchObject({ sha256: A });
  });

  it('spreads the requests of many waiting nodes', () => {
    const many = { nodes: 1_000, updated: 100, skipped: 0, skippedNodes: [], wave: 0 };
    expect(updateVerdict(spec, report(), { state: EMPTY, fleet: many, ...OPTIONS })).toMatchObject({
      waitSeconds: 900,
    });
  });
});

describe('the report of a node', () => {
  const updating: RolloutState = { updating: [claim('a'), claim('b')], failed: [] };

  it('frees its place when it runs the version', () => {
    expect(withReport(updating, spec, report({ version: '2.0.0' }), OPTIONS).updating).toEqual([claim('b')]);
  });

  it('counts it as failed once', () => {
    const failed = { sha256: A, message: 'no heartbeat' };
    const once = withReport(updating, spec, report({ failed }), OPTIONS);
    expect(once).toEqual({ updating: [claim('b')], failed: [failure('a')] });
    expect(withReport(once, spec, report({ failed }), OPTIONS)).toBe(once);
  });

  it('changes nothing while it updates, and frees the place of an artifact that the release no longer has', () => {
    expect(withReport(updating, spec, report(), OPTIONS)).toBe(updating);
    const replaced = { ...spec, artifacts: [{ ...artifact, sha256: B }] };
    expect(withReport(updating, replaced, report(), OPTIONS).updating).toEqual([claim('b')]);
    expect(withReport(updating, { ...spec, isPaused: true }, report(), OPTIONS).updating).toEqual([claim('b')]);
    const old = report({ failed: { sha256: B, message: '' } });
    expect(withReport(EMPTY, spec, old, OPTIONS)).toBe(EMPTY);
  });

  it('of deleted nodes and of replaced artifacts is forgotten', () => {
    const state = { updating: [claim('a', B), claim('b')], failed: [failure('c'), failure('d', B)] };
    expect(withoutObsolete(state, spec, new Set(['a', 'c', 'd']))).toEqual({
      updating: [claim('a', B)],
      failed: [failure('c')],
    });
  });
});

it('limits unavailable nodes by a count or a share, with at least one', () => {
  expect(unavailableMax({ maxUnavailable: 3 }, 10)).toBe(3);
  expect(unavailableMax({ maxUnavailable: '25%' }, 10)).toBe(3);
  expect(unavailableMax({ maxUnavailable: '1%' }, 0)).toBe(1);
  expect(unavailableMax({ maxUnavailable: '100%' }, 10_000)).toBe(500);
});

describe('a node that waits', () => {
  const later = { ...spec, maxUnavailable: 5 };
  const fleet = { nodes: 9, updated: 0, skipped: 0, skippedNodes: [], wave: 0 };
  const view = { state: { updating: [claim('c')], failed: [] }, fleet, listedUnitsMax: 80_000 };
  const canary = { labels: { ring: 'canary' }, version: '1.0.0' };
  const rest = { labels: {}, version: '1.0.0' };

  it('waits for certain while a holder is in an earlier wave, and reports a version', () => {
    expect(isHeldBy([rest, canary], later, report(), view)).toBe(true);
    expect(isHeldBy([{ ...canary, version: undefined }], later, report(), view)).toBe(false);
    expect(isHeldBy([canary], later, report({ labels: canary.labels }), view)).toBe(false);
    expect(isHeldBy([rest], later, report(), view)).toBe(false);
  });

  it('waits for certain while no place is free, or the status has no room', () => {
    expect(isHeldBy([rest], spec, report(), view)).toBe(true);
    expect(isHeldBy([rest], later, report(), { ...view, listedUnitsMax: 200 })).toBe(true);
  });

  it('may continue when a holder left the release, or there is none', () => {
    expect(isHeldBy([canary, undefined], spec, report(), view)).toBe(false);
    expect(isHeldBy([], { ...spec, maxUnavailable: 0 }, report(), view)).toBe(false);
  });

  it('needs counts for a place alone', () => {
    expect(needsCounts(spec, report(), EMPTY)).toBe(true);
    expect(needsCounts({ ...spec, isPaused: true }, report(), EMPTY)).toBe(false);
    expect(needsCounts(spec, report(), { updating: [claim('a')], failed: [] })).toBe(false);
    expect(needsCounts(spec, report(), { updating: [], failed: [failure('a')] })).toBe(false);
    expect(needsCounts(spec, report({ version: '2.0.0' }), EMPTY)).toBe(false);
    expect(needsCounts(spec, report({ version: '2.1.0' }), EMPTY)).toBe(false);
  });

  it('has every holder read in turn', () => {
    const names = Array.from({ length: 23 }, (_, index) => `n${index}`);
    const state = {
      updating: names.slice(0, 9).map((name) => claim(name)),
      failed: names.slice(9).map((n) => failure(n)),
    };
    const read = [7, 8, 9].map((slot) => holdersAt(state, slot));
    expect(read.map(({ length }) => length)).toEqual([10, 10, 10]);
    expect(new Set(read.flat())).toEqual(new Set(names));
    expect(holdersAt(EMPTY, 7)).toEqual([]);
    expect(holdersAt({ updating: [claim('c')], failed: [failure('f')] }, 7)).toEqual(['c', 'f']);
  });
});
