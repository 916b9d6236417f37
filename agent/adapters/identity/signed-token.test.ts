import { createHash, createPublicKey, verify } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { type MachineKey, machineKey, makeNextMachineKey } from './key-file.ts';
import { ServerClock } from './server-clock.ts';
import { TokenSigner } from './signed-token.ts';

const START_MS = 1_700_000_000_000;
const START_SECONDS = START_MS / 1_000;
let key: MachineKey;
let other: MachineKey;
beforeEach(async () => {
  const root = folderForTest();
  [key, other] = [await machineKey(root), await makeNextMachineKey(root)];
});

function world() {
  const time = new SteppedTime(START_MS);
  const clock = new ServerClock(time);
  return { time, clock, signer: new TokenSigner('system:node:n1', 'c1', clock) };
}
const partOf = (token: string, index: number): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[index] ?? '', 'base64url').toString());

describe('the clock of the server', () => {
  it('is ours until an answer differs, whatever is set on the machine', async () => {
    const { time, clock } = world();
    await time.pass(1_000);
    expect(new ServerClock(time).nowMs()).toBe(START_MS + 1_000);
    time.setClock(3_600_000);
    expect([clock.nowMs(), clock.offsetMs()]).toEqual([START_MS + 1_000, 0]);
    clock.observe(START_MS + 5_999);
    expect(clock.offsetMs()).toBe(0);
    clock.observe(START_MS + 6_000);
    expect([clock.nowMs(), clock.offsetMs()]).toEqual([START_MS + 6_000, 5_000]);
    await time.pass(500);
    expect(clock.nowMs()).toBe(START_MS + 6_500);
    clock.observe(START_MS - 58_500);
    expect(clock.offsetMs()).toBe(-60_000);
  });

  it('runs on while the machine is suspended: a token of before is not sent, and no difference is reported', () => {
    const { time, clock, signer } = world();
    const before = signer.bearer(key, 'all');
    time.suspend(28_800_000);
    expect(clock.nowMs()).toBe(START_MS + 28_800_000);
    clock.observe(time.nowMs());
    expect([clock.offsetMs(), signer.bearer(key, 'all') === before]).toEqual([0, false]);
  });
});

describe('a token', () => {
  it('is signed with the key of the machine, for each audience', () => {
    const { signer } = world();
    const token = signer.bearer(key, 'all');
    expect(partOf(token, 0)).toEqual({ alg: 'ES256', typ: 'JWT', kid: key.keyId });
    expect(partOf(token, 1)).toEqual({
      iss: 'system:node:n1',
      sub: 'system:node:n1',
      aud: 'c1',
      iat: START_SECONDS,
      exp: START_SECONDS + 300,
    });
    const [header = '', claims = '', signature = ''] = token.split('.');
    const publicKey = { key: createPublicKey(key.privateKey), dsaEncoding: 'ieee-p1363' as const };
    expect(verify('sha256', Buffer.from(`${header}.${claims}`), publicKey, Buffer.from(signature, 'base64url'))).toBe(
      true,
    );
    expect(partOf(signer.bearer(key, 'beat'), 1)).toMatchObject({ aud: 'c1#beat' });
  });

  it('is kept until a minute before its end, and signed again when the clock was set back', async () => {
    const { signer, time, clock } = world();
    const token = signer.bearer(key, 'all');
    await time.pass(239_999);
    expect(signer.bearer(key, 'all')).toBe(token);
    await time.pass(1);
    const next = signer.bearer(key, 'all');
    expect(next).not.toBe(token);
    clock.observe(START_MS + 240_000 - 61_000);
    expect(partOf(signer.bearer(key, 'all'), 1)).toMatchObject({ iat: START_SECONDS + 179 });
  });

  it('for one heartbeat is bound to its body, and not kept', () => {
    const { signer } = world();
    const body = new TextEncoder().encode('{"a":1}');
    const token = signer.boundBearer(key, body);
    expect(partOf(token, 1)).toMatchObject({
      aud: 'c1#beat',
      exp: START_SECONDS + 30,
      body_sha256: createHash('sha256').update(body).digest('base64url'),
    });
    expect(signer.find(token)).toBeUndefined();
  });

  it('is found by its text', () => {
    const { signer } = world();
    const [beat, all] = [signer.bearer(other, 'beat'), signer.bearer(key, 'all')];
    expect(signer.find(beat)).toEqual({ audience: 'beat', keyId: other.keyId });
    expect(signer.find(all)).toEqual({ audience: 'all', keyId: key.keyId });
    expect(signer.find('x')).toBeUndefined();
  });

  it('was refused by the clock if it has expired, or if the clock differs by 15 s from that of its dates', async () => {
    const { signer, time, clock } = world();
    expect(signer.isRefusedByClock('all')).toBe(false);
    signer.bearer(key, 'all');
    expect([signer.isRefusedByClock('all'), signer.isRefusedByClock('beat')]).toEqual([false, false]);
    clock.observe(START_MS + 14_999);
    expect(signer.isRefusedByClock('all')).toBe(false);
    clock.observe(START_MS + 15_000);
    expect(signer.isRefusedByClock('all')).toBe(true);
    clock.observe(START_MS);
    await time.pass(240_000);
    expect(signer.isRefusedByClock('all')).toBe(true);
  });

  it('is discarded, or kept if a key signed it', () => {
    const { signer } = world();
    const [all, beat] = [signer.bearer(key, 'all'), signer.bearer(other, 'beat')];
    signer.discardUnlessSignedBy(key.keyId);
    expect([signer.find(all)?.audience, signer.find(beat)]).toEqual(['all', undefined]);
    signer.discard();
    expect(signer.find(all)).toBeUndefined();
  });
});
