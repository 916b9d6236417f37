import { expect, it } from 'vitest';
import { silentLog } from '../../../test/support/agent-api.ts';
import type { Sealer } from '../../ports/sealer.ts';
import type { GenerationRead } from '../../ports/state-generations.ts';
import { PodMemory, type Remembered } from './pod-memory.ts';

const OWNER = { nodeName: 'edge-1', clusterId: 'c' };

/** A disk of two generations that may be full, and a sealer. The key of the sealer may change. */
function machine() {
  const generations: string[] = [];
  const at = { isFull: false, key: 'k1', writes: 0 };
  const warnings: string[] = [];
  const sealer: Sealer = {
    seal: async (text) => Buffer.from(`${at.key} ${text}`).toString('base64'),
    async open(sealed) {
      const text = Buffer.from(sealed, 'base64').toString();
      return text.startsWith(`${at.key} `) ? text.slice(at.key.length + 1) : undefined;
    },
  };
  const memory = (over: { readonly sealer?: Sealer | undefined } = { sealer }) =>
    new PodMemory({
      owner: OWNER,
      generations: {
        read: async () => generations.map((text): GenerationRead => ({ kind: 'read', text })),
        async write(text) {
          if (at.isFull) throw new Error('ENOSPC');
          at.writes += 1;
          generations.unshift(text);
          generations.splice(2);
        },
        remove: async () => void generations.splice(0),
      },
      sealer: over.sealer,
      log: { ...silentLog, warn: (message) => void warnings.push(message) },
    });
  return { generations, at, warnings, memory };
}

const remembered = (name: string, token = 't1'): Remembered => ({
  pods: [{ metadata: { uid: name, name, namespace: 'default' }, spec: { containers: [{ name: 'main' }] } }],
  configMaps: [],
  secrets: [{ namespace: 'default', kind: 'secret', name: 's', object: { metadata: {}, data: { a: 'b' } } }],
  tokens: [{ podUid: name, key: '3600 ', token }],
});

it('reads what was saved, and writes nothing that is there already', async () => {
  const { at, memory } = machine();
  await memory().save(remembered('web'));
  const next = memory();
  expect(await next.read()).toEqual(remembered('web'));
  await next.save(remembered('web'));
  // A token that replaces another one is no reason to write.
  await next.save(remembered('web', 't2'));
  expect(at.writes).toBe(1);
  await next.save(remembered('other', 't3'));
  expect(at.writes).toBe(2);
  expect(await memory().read()).toEqual(remembered('other', 't3'));
});

it('falls back to the generation before a torn one, and to none', async () => {
  const { generations, warnings, memory } = machine();
  expect(await memory().read()).toBeUndefined();
  await memory().save(remembered('old'));
  await memory().save(remembered('new'));
  generations[0] = generations[0]!.slice(0, -20);
  expect(await memory().read()).toEqual(remembered('old'));
  generations[1] = '';
  expect(await memory().read()).toBeUndefined();
  expect(warnings).toHaveLength(3);
});

it('keeps the state before on a full disk, complains once, and writes when there is room', async () => {
  const { at, warnings, memory } = machine();
  const one = memory();
  await one.save(remembered('old'));
  at.isFull = true;
  const next = remembered('new');
  for (let times = 0; times < 3; times += 1) await one.save(next);
  expect(one.complaint()).toBe('the pods of this machine cannot be remembered: ENOSPC');
  expect(warnings).toHaveLength(1);
  expect(await memory().read()).toEqual(remembered('old'));
  at.isFull = false;
  await one.save(next);
  expect(one.complaint()).toBeUndefined();
  expect(await memory().read()).toEqual(remembered('new'));
});

it('writes the newest of many saves, without all of those between', async () => {
  const { at, memory } = machine();
  const one = memory();
  const first = one.save(remembered('first'));
  await Promise.resolve();
  await Promise.all([first, ...Array.from({ length: 50 }, (_, index) => one.save(remembered(`web-${index}`)))]);
  expect(at.writes).toBe(2);
  expect(await memory().read()).toEqual(remembered('web-49'));
});

it('is on disk after a save of what is being written already', async () => {
  const { at, memory } = machine();
  const one = memory();
  const state = remembered('web');
  void one.save(state);
  await one.save(state);
  expect(at.writes).toBe(1);
});

it('seals Secrets again with the key that stays', async () => {
  const { at, memory } = machine();
  const one = memory();
  await one.save(remembered('web'));
  at.key = 'k2';
  expect((await memory().read())?.secrets).toEqual([]);
  await one.reseal();
  expect(await memory().read()).toEqual(remembered('web'));
});

it('also seals again what only an earlier agent saved', async () => {
  const { at, memory } = machine();
  await memory().save(remembered('web'));
  const next = memory();
  await next.read();
  at.key = 'k2';
  await next.reseal();
  expect(await memory().read()).toEqual(remembered('web'));
});

it('keeps Secrets that cannot be opened now, until there are others', async () => {
  const { at, memory } = machine();
  await memory().save(remembered('web'));
  at.key = 'k2';
  const next = memory();
  await next.read();
  await next.save({ ...remembered('other'), secrets: [], tokens: [] });
  at.key = 'k1';
  expect(await memory().read()).toEqual({ ...remembered('web'), pods: remembered('other').pods });
});

it('keeps no Secret and no token without a sealer', async () => {
  const { generations, memory } = machine();
  await memory({ sealer: undefined }).save(remembered('web'));
  expect(generations[0]).not.toContain('"a":"b"');
  expect(await memory({ sealer: undefined }).read()).toEqual({ ...remembered('web'), secrets: [], tokens: [] });
});

it('with Secrets kept before and unwanted now, leaves them in no generation', async () => {
  const { at, generations, memory } = machine();
  for (const name of ['old', 'new']) await memory().save(remembered(name));
  expect(generations.join()).toContain('sealed');
  expect(await memory({ sealer: undefined }).read()).toEqual({ ...remembered('new'), secrets: [], tokens: [] });
  expect(generations).toHaveLength(2);
  expect(generations.join()).not.toContain('sealed');
  await memory({ sealer: undefined }).read();
  expect(at.writes).toBe(4);
});

it('reads no object again that has not been replaced', async () => {
  const { memory } = machine();
  const one = memory();
  const state = remembered('web');
  await one.save(state);
  const secrets = state.secrets.map((each) => ({ ...each, toJSON: () => expect.unreachable() }));
  await one.save({ ...state, secrets });
});

it('starts the pods without their Secrets where these cannot be opened, and keeps them', async () => {
  const { generations, warnings, memory } = machine();
  await memory().save(remembered('web'));
  const sealed = JSON.parse(generations[0]!).sealed;
  const sealer: Sealer = { seal: async (text) => text, open: () => Promise.reject(new Error('EIO')) };
  const next = memory({ sealer });
  expect(await next.read()).toEqual({ ...remembered('web'), secrets: [], tokens: [] });
  expect(warnings).toEqual(['the remembered Secrets cannot be used']);
  await next.save({ ...remembered('other'), secrets: [], tokens: [] });
  expect(JSON.parse(generations[0]!).sealed).toBe(sealed);
});
