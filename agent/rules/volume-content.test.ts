import { describe, expect, it } from 'vitest';
import type { KubePod, Volume } from '../../shared/kinds/types.ts';
import type { ReadObject } from './pod-objects.ts';
import {
  fsGroupOf,
  sizeLimitBytes,
  type TokenValue,
  tokenKey,
  tokenRefreshMs,
  tokenRequest,
  tokensOf,
  volumeContent,
} from './volume-content.ts';

const pod: KubePod = { metadata: { name: 'p', labels: { a: 'b' } }, spec: { containers: [{ name: 'main' }] } };
const objects: Readonly<Record<string, ReadObject>> = {
  'configmap/map': { kind: 'found', object: { metadata: {}, data: { a: 'ä', b: 'two' }, binaryData: { c: '/wA=' } } },
  'secret/token': { kind: 'found', object: { metadata: {}, data: { a: 'c2VjcmV0' } } },
  'configmap/broken': { kind: 'failed', message: 'no answer' },
  'secret/broken': { kind: 'failed', message: 'no answer' },
};
const contentOf = (volume: Volume, given: { pod?: KubePod; token?: TokenValue } = {}) =>
  volumeContent(volume, {
    pod: given.pod ?? pod,
    objects: (kind, name) => objects[`${kind}/${name}`] ?? { kind: 'missing' },
    machine: { hostIp: undefined, allocatable: {} },
    token: ({ audience, lifetimeSeconds }) => given.token ?? { kind: 'token', token: `${audience} ${lifetimeSeconds}` },
  });
/** `path mode content` of each file; the message of a failure; or the content itself. */
function shown(volume: Volume, given: Parameters<typeof contentOf>[1] = {}) {
  const content = contentOf(volume, given);
  if (content.kind === 'failed') return content.message;
  if (content.kind !== 'files') return content;
  return [...content.files].map(([path, { bytes, mode, userId }]) =>
    [path, mode.toString(8), Buffer.from(bytes).toString('latin1'), ...(userId === undefined ? [] : [userId])].join(
      ' ',
    ),
  );
}

describe('a volume of an object', () => {
  it('has a file per key', () => {
    expect(shown({ name: 'v', configMap: { name: 'map' } })).toEqual([
      `a 644 ${Buffer.from('ä').toString('latin1')}`,
      'b 644 two',
      'c 644 \u00ff\u0000',
    ]);
    expect(shown({ name: 'v', secret: { secretName: 'token', defaultMode: 0o400 } })).toEqual(['a 400 secret']);
    expect(contentOf({ name: 'v', configMap: { name: 'map' } })).toMatchObject({ isSecret: false });
    expect(contentOf({ name: 'v', secret: { secretName: 'token' } })).toMatchObject({ isSecret: true });
  });

  it('has the chosen keys at their paths', () => {
    const items = [
      { key: 'b', path: 'x/y' },
      { key: 'a', path: 'z', mode: 0o600 },
    ];
    expect(shown({ name: 'v', configMap: { name: 'map', items, defaultMode: 0o440 } })).toEqual([
      'x/y 440 two',
      `z 600 ${Buffer.from('ä').toString('latin1')}`,
    ]);
  });

  it.each([
    [{ configMap: { name: 'none' } }, 'configmap "none" not found'],
    [{ secret: { secretName: 'none' } }, 'secret "none" not found'],
    [{ configMap: {} }, 'configmap "" not found'],
    [{ configMap: { name: 'none', optional: true } }, []],
    [{ configMap: { name: 'broken', optional: true } }, 'no answer'],
    [
      { configMap: { name: 'map', items: [{ key: 'none', path: 'x' }] } },
      'configmap references non-existent config key: none',
    ],
    [
      { secret: { secretName: 'token', items: [{ key: 'none', path: 'x' }] } },
      'references non-existent secret key: none',
    ],
    [
      {
        secret: {
          secretName: 'token',
          optional: true,
          items: [
            { key: 'none', path: 'x' },
            { key: 'a', path: 'y' },
          ],
        },
      },
      ['y 644 secret'],
    ],
  ])('%j: %j', (source, expected) => {
    expect(shown({ name: 'v', ...source })).toEqual(expected);
  });
});

describe('a volume of the pod itself', () => {
  it('has a file per field', () => {
    const items = [
      { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
      { path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'requests.cpu' }, mode: 0o400 },
    ];
    expect(shown({ name: 'v', downwardAPI: { items } })).toEqual(['labels 644 a="b"', 'cpu 400 0']);
    expect(contentOf({ name: 'v', downwardAPI: { items, defaultMode: 0o440 } })).toMatchObject({ isSecret: false });
    expect(shown({ name: 'v', downwardAPI: { items: items.slice(0, 1), defaultMode: 0o440 } })).toEqual([
      'labels 440 a="b"',
    ]);
    expect(shown({ name: 'v', downwardAPI: {} })).toEqual([]);
  });

  it('names all of its faults, each once', () => {
    const wrong = (path: string, fieldPath: string) => ({ path, fieldRef: { fieldPath } });
    expect(shown({ name: 'v', downwardAPI: { items: [wrong('a', 'x'), wrong('b', 'x')] } })).toBe(
      'unsupported fieldPath: x',
    );
    expect(shown({ name: 'v', downwardAPI: { items: [wrong('a', 'x'), wrong('b', 'y')] } })).toBe(
      '[unsupported fieldPath: x, unsupported fieldPath: y]',
    );
    expect(shown({ name: 'v', downwardAPI: { items: [{ path: 'a' }] } })).toContain('not found');
  });
});

describe('a projected volume', () => {
  const token = { serviceAccountToken: { path: 'token' } };

  it('has the files of all sources; later ones replace earlier ones', () => {
    const sources = [
      { configMap: { name: 'map', items: [{ key: 'b', path: 'file' }] } },
      { secret: { name: 'token', items: [{ key: 'a', path: 'file' }] } },
      { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
      token,
    ];
    const volume = { name: 'v', projected: { sources, defaultMode: 0o640 } };
    expect(shown(volume)).toEqual(['file 640 secret', 'labels 640 a="b"', 'token 640  3600']);
    expect(contentOf(volume)).toMatchObject({ isSecret: true });
    expect(shown({ name: 'v', projected: {} })).toEqual([]);
    expect(shown({ name: 'v', projected: { sources: [token] } })).toEqual(['token 644  3600']);
  });

  it('names the faults of all sources', () => {
    const sources = [{ configMap: { name: 'none' } }, token, { secret: { name: 'broken' } }];
    expect(shown({ name: 'v', projected: { sources } }, { token: { kind: 'failed', message: 'no token' } })).toBe(
      '[configmap "none" not found, no token, no answer]',
    );
    expect(shown({ name: 'v', projected: { sources: [{ clusterTrustBundle: { path: 'x' } }, {}] } })).toBe(
      '[projected sources of type clusterTrustBundle are not supported on this node, projected sources of type unknown are not supported on this node]',
    );
  });

  it.each([
    ['the only user of the pod', { securityContext: { runAsUser: 7 } }, [{}], 'token 600  3600 7'],
    [
      'the user of all containers',
      {},
      [{ securityContext: { runAsUser: 5 } }, { securityContext: { runAsUser: 5 } }],
      'token 600  3600 5',
    ],
    ['no single user', {}, [{ securityContext: { runAsUser: 5 } }, {}], 'token 644  3600'],
    ['a group', { securityContext: { fsGroup: 3 } }, [{}], 'token 600  3600'],
    ['no user', {}, [{}], 'token 644  3600'],
  ])('has a token for %s', (_what, spec, containers, file) => {
    const given: KubePod = {
      metadata: {},
      spec: { ...spec, containers: containers.map((each) => ({ name: 'c', ...each })) },
    };
    expect(shown({ name: 'v', projected: { sources: [token] } }, { pod: given })).toEqual([file]);
    const [first, ...rest] = given.spec?.containers ?? [];
    const withInit: KubePod = {
      metadata: {},
      spec: { ...given.spec, initContainers: first ? [first] : [], containers: rest },
    };
    expect(shown({ name: 'v', projected: { sources: [token] } }, { pod: withInit })).toEqual([file]);
  });
});

describe('other volumes', () => {
  it.each([
    [{ emptyDir: {} }, { kind: 'emptyDir', inMemory: false }],
    [{ emptyDir: { medium: 'Memory' } }, { kind: 'emptyDir', inMemory: true }],
    [{}, { kind: 'emptyDir', inMemory: false }],
    [{ hostPath: { path: '/data', type: 'Directory' } }, { kind: 'hostPath', path: '/data', type: 'Directory' }],
    [{ hostPath: {} }, { kind: 'hostPath', path: '', type: '' }],
    [{ nfs: { server: 's', path: '/' } }, 'volumes of type nfs are not supported on this node'],
  ])('with %j: %j', (source, expected) => {
    expect(shown({ name: 'v', ...source } as Volume)).toEqual(expected);
  });

  it.each([
    [undefined, undefined],
    ['1Ki', 1_024],
    ['1500m', 2],
    ['0', undefined],
    ['-1', undefined],
    ['x', undefined],
  ])('have the limit %s: %s bytes', (sizeLimit, bytes) => {
    expect(sizeLimitBytes({ name: 'v', emptyDir: sizeLimit === undefined ? {} : { sizeLimit } })).toBe(bytes);
    expect(sizeLimitBytes({ name: 'v' })).toBeUndefined();
  });
});

describe('the tokens of a pod', () => {
  it('are listed once for each audience and lifetime', () => {
    const source = (more: object) => ({ serviceAccountToken: { path: 'x', ...more } });
    const volumes = [
      { name: 'a', projected: { sources: [source({}), source({ audience: 'v' }), { secret: { name: 's' } }] } },
      { name: 'b', projected: { sources: [source({}), source({ expirationSeconds: 600 })] } },
      { name: 'c', emptyDir: {} },
      { name: 'd', projected: {} },
    ];
    expect(tokensOf({ metadata: {}, spec: { containers: [], volumes } }).map(tokenKey)).toEqual([
      '3600 ',
      '3600 v',
      '600 ',
    ]);
    expect(tokensOf({ metadata: {} })).toEqual([]);
    expect(tokenRequest({ path: 'x' })).toEqual({ audience: '', lifetimeSeconds: 3_600 });
  });

  it('are due after four fifths of their life, at most a day', () => {
    expect([tokenRefreshMs(1_000), tokenRefreshMs(30 * 3_600_000), tokenRefreshMs(31 * 3_600_000)]).toEqual([
      800,
      24 * 3_600_000,
      24 * 3_600_000,
    ]);
  });
});

it('the group of a pod is a number, which may be 0', () => {
  const groupOf = (fsGroup: unknown) =>
    fsGroupOf({ metadata: {}, spec: { containers: [], securityContext: { fsGroup } as never } });
  expect([groupOf(0), groupOf(5), groupOf('5'), fsGroupOf({ metadata: {} })]).toEqual([0, 5, undefined, undefined]);
});

it.each<Volume>([
  { name: 'v', configMap: { name: 'map' } },
  { name: 'v', projected: { sources: [{ configMap: { name: 'map' } }] } },
])('a fault of this program is thrown, and no message of the pod: %j', (volume) => {
  const objects = () => {
    throw new TypeError('a bug');
  };
  const facts = { pod, objects, machine: { hostIp: undefined, allocatable: {} }, token: () => undefined as never };
  expect(() => volumeContent(volume, facts)).toThrow(new TypeError('a bug'));
});
