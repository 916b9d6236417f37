import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { answered, refused, scriptedApi, silentLog, timedOut } from '../../../test/support/agent-api.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { KubeAnswer } from '../../ports/kube-api.ts';
import { Enroller, type EnrolmentConfig, EnrolmentError } from './enroller.ts';
import { readEnrolment, writeEnrolment } from './enrolment-file.ts';
import { type MachineKey, machineKey, makeNextMachineKey } from './key-file.ts';

let root: string;
let key: MachineKey;
let next: MachineKey;
beforeEach(async () => {
  root = folderForTest();
  key = await machineKey(root);
  next = await makeNextMachineKey(root);
});

const nodeLabels = { site: 'north' };
const identity = (...keyIds: string[]): KubeAnswer =>
  answered(201, {
    metadata: { name: 'n1' },
    spec: { keys: keyIds.map((keyId) => ({ keyId, addedAt: '2026-01-01T00:00:00Z' })), nodeLabels },
  });
const storedOf = (more: object = {}) => ({
  clusterId: 'c1',
  nodeName: 'n1',
  keyId: key.keyId,
  bootstrapTokenId: 'abc',
  nodeLabels: { site: 'stored' },
  ...more,
});

function world(answer: (count: number) => KubeAnswer, more: Partial<EnrolmentConfig> = {}, withApi = true) {
  const time = new SteppedTime(1_700_000_000_000);
  let count = 0;
  const api = scriptedApi(() => {
    count += 1;
    return answer(count);
  });
  const errors: string[] = [];
  const log = { ...silentLog, error: (message: string) => errors.push(message) };
  const config = { nodeName: 'n1', clusterId: 'c1', rootDirectory: root, bootstrapToken: 'abc.secret', ...more };
  const enroller = new Enroller(config, { time, log, ...(withApi ? { bootstrapApi: api } : {}) });
  return { enroller, time, api, errors, pair: { key, next: undefined } };
}
const without = { bootstrapToken: undefined } as never;

describe('an enrolment', () => {
  it('is made once, and kept on disk', async () => {
    const { enroller, api, pair } = world(() => identity('other', key.keyId));
    expect(await enroller.nodeLabels(pair)).toEqual(nodeLabels);
    expect(await enroller.nodeLabels(pair)).toEqual(nodeLabels);
    expect(api.requests).toHaveLength(1);
    expect(api.requests[0]).toMatchObject({
      method: 'POST',
      body: { kind: 'NodeIdentity', metadata: { name: 'n1' }, spec: { publicKey: key.publicKey } },
    });
    expect(await readEnrolment(root)).toEqual(storedOf({ nodeLabels }));
    expect(enroller.complaint()).toBeUndefined();
  });

  it.each([
    ['the same', true, {}, {}],
    ['the same, of a configuration without a token,', true, {}, without],
    ['another cluster', false, { clusterId: 'c2' }, {}],
    ['another node', false, { nodeName: 'n2' }, {}],
    ['another key', false, { keyId: 'x' }, {}],
    ['another token', false, { bootstrapTokenId: 'x' }, {}],
  ])('on disk of %s is used: %s', async (_what, isUsed, stored, config) => {
    await writeEnrolment(root, storedOf(stored));
    const { enroller, api, pair } = world(() => identity(key.keyId), config);
    expect(await enroller.nodeLabels(pair)).toEqual(isUsed ? { site: 'stored' } : nodeLabels);
    expect(api.requests).toHaveLength(isUsed ? 0 : 1);
  });

  it('on disk is used with the next key, too', async () => {
    await writeEnrolment(root, storedOf({ keyId: next.keyId }));
    const { enroller } = world(() => timedOut);
    expect(await enroller.nodeLabels({ key, next })).toEqual({ site: 'stored' });
  });

  it('is not made without a token, or without a way to send it', async () => {
    const byHand = world(() => timedOut, without);
    expect(await byHand.enroller.nodeLabels(byHand.pair)).toEqual({});
    const unable = world(() => timedOut, {}, false);
    expect(await unable.enroller.nodeLabels(unable.pair)).toEqual({});
    expect(await readEnrolment(root)).toBeUndefined();
  });

  it.each([
    [refused(401, 'Unauthorized'), '401 the bootstrap token has expired, was revoked, or belongs to another cluster'],
    [refused(403, 'Forbidden'), '403'],
  ])('that is refused is not repeated for a minute: %j', async (answer, why) => {
    const { enroller, api, time, pair } = world(() => answer);
    const refusal = await enroller.nodeLabels(pair).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ message: `n1 could not be enrolled: ${why}`, isRefused: true });
    await time.pass(59_999);
    await expect(enroller.nodeLabels(pair)).rejects.toBe(refusal);
    expect(api.requests).toHaveLength(1);
    await time.pass(1);
    await expect(enroller.nodeLabels(pair)).rejects.toThrow(EnrolmentError);
    expect(api.requests).toHaveLength(2);
  });

  it.each([timedOut, refused(429, 'x'), refused(500, 'x')])(
    'that may succeed later is repeated at once: %j',
    async (answer) => {
      const { enroller, pair } = world((count) => (count === 1 ? answer : identity(key.keyId)));
      await expect(enroller.nodeLabels(pair)).rejects.toMatchObject({ isRefused: false });
      expect(await enroller.nodeLabels(pair)).toEqual(nodeLabels);
    },
  );

  it.each([answered(200, 'a page'), identity('other')])('needs our key in the answer: %j', async (answer) => {
    const { enroller, pair } = world(() => answer);
    await expect(enroller.nodeLabels(pair)).rejects.toMatchObject({
      message: 'n1 could not be enrolled: the answer does not hold our key',
      isRefused: false,
    });
    expect(await readEnrolment(root)).toBeUndefined();
  });
});

describe('an enrolment that cannot be written', () => {
  it('is valid, reported once, and written again after a minute', async () => {
    const { enroller, api, time, errors, pair } = world(() => identity(key.keyId), {
      rootDirectory: join(root, 'missing'),
    });
    await enroller.retryWrite();
    expect(await enroller.nodeLabels(pair)).toEqual(nodeLabels);
    expect(enroller.complaint()).toMatch(/^the identity is not written: ENOENT/);
    await time.pass(59_999);
    mkdirSync(join(root, 'missing'));
    await enroller.retryWrite();
    expect(await readEnrolment(join(root, 'missing'))).toBeUndefined();
    enroller.keyAdopted('adopted');
    await time.pass(1);
    await enroller.retryWrite();
    expect(await readEnrolment(join(root, 'missing'))).toMatchObject({ keyId: 'adopted', nodeLabels });
    expect([enroller.complaint(), errors.length, api.requests.length]).toEqual([undefined, 1, 1]);
  });

  it('is tried once a minute', async () => {
    const { enroller, time, errors, pair } = world(() => identity(key.keyId), { rootDirectory: join(root, 'missing') });
    await enroller.nodeLabels(pair);
    await time.pass(60_000);
    await enroller.retryWrite();
    await time.pass(30_000);
    mkdirSync(join(root, 'missing'));
    await enroller.retryWrite();
    expect(enroller.complaint()).toBeDefined();
    await time.pass(30_000);
    await enroller.retryWrite();
    expect([enroller.complaint(), errors.length]).toEqual([undefined, 1]);
    enroller.keyAdopted('x');
    expect(await readEnrolment(join(root, 'missing'))).toMatchObject({ keyId: key.keyId });
  });
});

it('an enrolment that cannot be read is an error, and none is made', async () => {
  const { enroller, api, pair } = world(() => identity(key.keyId));
  rmSync(root, { recursive: true });
  writeFileSync(root, '');
  await expect(enroller.nodeLabels(pair)).rejects.toMatchObject({ code: 'ENOTDIR' });
  expect(api.requests).toEqual([]);
});

describe('the next key', () => {
  it('is named in the file, if the file names the current one', async () => {
    const { enroller } = world(() => timedOut);
    await enroller.nameNextKey({ key, next });
    expect(await readEnrolment(root)).toBeUndefined();
    await writeEnrolment(root, storedOf({ keyId: 'other' }));
    await enroller.nameNextKey({ key, next });
    expect(await readEnrolment(root)).toEqual(storedOf({ keyId: 'other' }));
    await writeEnrolment(root, storedOf());
    await enroller.nameNextKey({ key, next });
    expect(await readEnrolment(root)).toEqual(storedOf({ keyId: next.keyId }));
    enroller.keyAdopted('nothing to write');
    expect(enroller.complaint()).toBeUndefined();
  });
});
