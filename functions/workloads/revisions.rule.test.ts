import { describe, expect, it } from 'vitest';
import type { KubeControllerRevision } from '../../shared/kinds/types.ts';
import { hashOf, inOrder, nextRevisionStep, surplusRevisions, templateOf } from './revisions.rule.ts';
import { templateHash } from './template.rule.ts';

const template = (more: object = {}) => ({
  metadata: { labels: { app: 'x' } },
  spec: { containers: [{ name: 'c', image: 'i' }], ...more },
});

describe('the revisions of a set', () => {
  const owner = {
    object: { metadata: { name: 'web', namespace: 'a', uid: 'o', annotations: { note: 'x' } } },
    template: template(),
    collisionCount: undefined,
    hashLabel: 'hash',
  };
  const step = (revisions: readonly KubeControllerRevision[], more: object = {}) =>
    nextRevisionStep({ ...owner, ...more }, revisions);
  const created = (revisions: readonly KubeControllerRevision[], more: object = {}) => {
    const next = step(revisions, more);
    if (next.kind !== 'create') throw new Error(next.kind);
    return next.revision;
  };
  const older = created([], { template: template({ hostname: 'old' }) });

  it('begin with one, which has the template as Go writes it', () => {
    const hash = templateHash(template(), undefined);
    expect(created([])).toEqual({
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: { name: `web-${hash}`, namespace: 'a', labels: { app: 'x', hash }, annotations: { note: 'x' } },
      data: expect.anything(),
      revision: 1,
    });
    expect(JSON.stringify(created([]).data)).toBe(
      '{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"x"}},' +
        '"spec":{"containers":[{"image":"i","name":"c","resources":{}}]}}}}',
    );
    expect(templateOf(created([]))).toEqual({
      metadata: { labels: { app: 'x' } },
      spec: { containers: [{ image: 'i', name: 'c', resources: {} }] },
    });
    expect('annotations' in created([], { object: { metadata: { name: 'web' } } }).metadata).toBe(false);
    const long = created([], { object: { metadata: { name: 'x'.repeat(250) } } });
    expect(long.metadata.name).toBe(`${'x'.repeat(223)}-${hash}`);
  });

  it('go on with the next number, stay current, and are numbered again when an old template returns', () => {
    const first = { ...older, revision: 4 };
    const next = created([first]);
    expect(next.revision).toBe(5);
    expect(step([next, first])).toEqual({ kind: 'current', current: next });
    expect(step([{ ...next, revision: 4 }, first])).toEqual({
      kind: 'renumber',
      previous: { ...next, revision: 4 },
      revision: 5,
    });
    expect(step([{ ...next, revision: 3 }, first])).toMatchObject({ kind: 'renumber', revision: 5 });
    const twin = { ...next, revision: 9, metadata: { ...next.metadata, name: 'twin' } };
    expect(step([twin, next])).toEqual({ kind: 'current', current: twin });
  });

  const named = (name: string, revision?: number, creationTimestamp?: string): KubeControllerRevision => ({
    metadata: { name, ...(creationTimestamp === undefined ? {} : { creationTimestamp }) },
    ...(revision === undefined ? {} : { revision }),
  });
  const names = (revisions: readonly KubeControllerRevision[]) => revisions.map(({ metadata }) => metadata.name);

  it('are in order of number, age and name', () => {
    const shuffled = [named('d', 2), named('c', 1, '2026'), named('b', 1, '2025'), named('a', 1, '2026'), named('e')];
    expect(names(inOrder(shuffled))).toEqual(['e', 'b', 'a', 'c', 'd']);
    expect(names(inOrder(shuffled.toReversed()))).toEqual(['e', 'b', 'a', 'c', 'd']);
  });

  it('have a hash in their label, or their name', () => {
    expect(hashOf({ metadata: { name: 'n', labels: { hash: 'h' } } }, 'hash')).toBe('h');
    expect(hashOf({ metadata: { name: 'n', labels: { other: 'h' } } }, 'hash')).toBe('n');
  });

  it.each([
    [2, false, ['b']],
    [3, false, []],
    [0, false, ['b', 'c', 'd']],
    [3, true, ['b']],
    [4, true, []],
    [0, true, ['b', 'c', 'd']],
  ])('beyond a limit of %i, live ones counted %s, are %j', (limit, countsLive, expected) => {
    const old = [named('d', 4), named('a', 1), named('c', 3), named('b', 2)];
    const isLive = ({ metadata }: KubeControllerRevision) => metadata.name === 'a';
    expect(names(surplusRevisions(old, limit, isLive, countsLive))).toEqual(expected);
  });
});
