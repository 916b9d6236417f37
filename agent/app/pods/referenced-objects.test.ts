import { describe, expect, it } from 'vitest';
import { answered, refused, scriptedApi, timedOut } from '../../../test/support/agent-api.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { KubeAnswer } from '../../ports/kube-api.ts';
import { ReferencedObjects } from './referenced-objects.ts';

const map = { kind: 'configmap', name: 'a b' } as const;
const secret = { kind: 'secret', name: 's' } as const;

function world(answer: (path: string) => KubeAnswer) {
  const time = new SteppedTime(1_700_000_000_000);
  const api = scriptedApi(({ path }) => answer(path));
  const objects = new ReferencedObjects({ api, time });
  return { time, objects, paths: () => api.requests.map(({ method, path }) => `${method} ${path}`) };
}

const objectOf = (more: object) => answered(200, { metadata: { name: 'x', managedFields: [{}] }, kind: 'X', ...more });

describe('the objects of pods', () => {
  it('has the text of a kubelet before the first read, and keeps only what pods use', async () => {
    const { objects, paths } = world((path) =>
      objectOf(path.includes('secrets') ? { data: { k: 'dg==' }, immutable: false } : { binaryData: { b: 'Yg==' } }),
    );
    const unread = (kind: string) => ({
      kind: 'failed',
      message: `failed to sync ${kind} cache: timed out waiting for the condition`,
    });
    expect(objects.get('n s', map)).toEqual(unread('configmap'));
    expect(objects.get('n s', secret)).toEqual(unread('secret'));
    await objects.read('n s', [map, secret], 1_000);
    expect(objects.get('n s', map)).toEqual({ kind: 'found', object: { metadata: {}, binaryData: { b: 'Yg==' } } });
    const ofSecret = { metadata: {}, data: { k: 'dg==' }, immutable: false };
    expect(objects.get('n s', secret)).toEqual({ kind: 'found', object: ofSecret });
    expect(objects.get('other', secret)).toEqual(unread('secret'));
    expect(paths()).toEqual([
      'GET /api/v1/namespaces/n%20s/configmaps/a%20b',
      'GET /api/v1/namespaces/n%20s/secrets/s',
    ]);
  });

  it.each([
    { of: 'an object', immutable: undefined, counts: [1, 1, 2] },
    { of: 'an object that may change', immutable: false, counts: [1, 1, 2] },
    { of: 'an immutable object', immutable: true, counts: [1, 1, 1] },
  ])('reads $of again at its age, and no earlier', async ({ immutable, counts }) => {
    const { objects, paths, time } = world(() => objectOf({ data: {}, immutable }));
    // The first read is not at the origin of the clock.
    await time.pass(5_000);
    const seen: number[] = [];
    for (const passedMs of [0, 999, 1]) {
      await time.pass(passedMs);
      await objects.read('ns', [map], 1_000);
      seen.push(paths().length);
    }
    expect(seen).toEqual(counts);
  });

  it('reads what was not found each time, and says why', async () => {
    const answers = [refused(404, 'NotFound'), refused(403, 'Forbidden'), answered(200, 'a page'), objectOf({})];
    const { objects, paths } = world(() => answers.shift() ?? timedOut);
    const kinds: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      await objects.read('ns', [map], 1_000_000);
      const read = objects.get('ns', map);
      kinds.push(read.kind === 'failed' ? read.message : read.kind);
    }
    expect(kinds).toEqual(['missing', '403', '200', 'found']);
    expect(paths()).toHaveLength(4);
  });

  it('keeps an object while the API does not answer, and not one that was deleted', async () => {
    const answers = [objectOf({ data: { k: '1' } }), timedOut, refused(404, 'NotFound'), timedOut];
    const { objects } = world(() => answers.shift() ?? timedOut);
    const read = async () => {
      await objects.read('ns', [map], 0);
      return objects.get('ns', map);
    };
    expect(await read()).toMatchObject({ kind: 'found' });
    expect(await read()).toMatchObject({ kind: 'found', object: { data: { k: '1' } } });
    expect(await read()).toEqual({ kind: 'missing' });
    expect(await read()).toEqual({ kind: 'failed', message: 'no answer' });
  });

  it('sends one request for concurrent reads, and another one for a later read', async () => {
    const { objects, paths } = world(() => objectOf({}));
    await Promise.all([objects.read('ns', [map, map], 0), objects.read('ns', [map], 0)]);
    expect(paths()).toHaveLength(1);
    await objects.read('ns', [map], 0);
    expect(paths()).toHaveLength(2);
  });

  it('forgets what no pod uses', async () => {
    const { objects, paths } = world(() => objectOf({}));
    await objects.read('ns', [map, secret], 1_000);
    objects.keepOnly(new Set(ReferencedObjects.keysOf('ns', [map])));
    expect([objects.get('ns', map).kind, objects.get('ns', secret).kind]).toEqual(['found', 'failed']);
    await objects.read('ns', [map, secret], 1_000);
    expect(paths()).toHaveLength(3);
  });
});
