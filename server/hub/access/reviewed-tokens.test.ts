import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import type { NodePublicKey } from '../../../shared/access/node-identity.ts';
import { thumbprintOf } from '../../../shared/access/public-keys.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import type { StartTimeLimit } from '../../../shared/clock.ts';
import { StoreFault } from '../../../shared/store/item-store.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { type Upstream, type UpstreamAnswer, UpstreamUnreachable } from '../upstream.ts';
import { clusterAccountKeys, clusterNodeKeys } from './cluster-keys.ts';
import { keptAnswers } from './kept-answers.ts';
import { questions } from './questions.ts';
import { reviewedTokens } from './reviewed-tokens.ts';

const ADA: UserInfo = { username: 'ada', groups: ['a'] };
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const ACCOUNT_KEY = {
  ...{ kty: 'EC', crv: 'P-256', x: 'B'.repeat(43), y: 'C'.repeat(43) },
};
const NODE_KEY = { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) };

/** A hub before a cluster that accepts `tokens`, and has one machine. */
function hub(items = memoryItemStore()) {
  const cluster = {
    tokens: new Set<string>(['good']),
    uid: 'one',
    machine: 'n1' as string | undefined,
    downSinceMs: undefined as number | undefined,
    /** It answers when this resolves. */
    slow: undefined as Promise<void> | undefined,
    asked: [] as string[],
    /** In place of every answer. */
    garbage: undefined as UpstreamAnswer | undefined,
  };
  const time = { nowMs: 1_000 * DAY_MS };
  const json = (status: number, body: object): UpstreamAnswer => ({
    ...{ status, headers: {}, body: Buffer.from(JSON.stringify(body)) },
  });
  const upstream: Upstream = {
    async send({ path, body }) {
      if (cluster.downSinceMs !== undefined) throw new UpstreamUnreachable('cut');
      cluster.asked.push(path.split('/').at(-1)!);
      await cluster.slow;
      if (cluster.garbage !== undefined) return cluster.garbage;
      if (path.endsWith('jwks')) return json(200, { keys: [ACCOUNT_KEY] });
      if (!path.endsWith('tokenreviews')) {
        const isKnown = path.endsWith(`/${cluster.machine}`);
        return isKnown ? json(200, { spec: { keys: [{ publicKey: NODE_KEY }] } }) : json(404, { kind: 'Status' });
      }
      const { spec } = JSON.parse(body!.toString()) as { spec: { token: string } };
      return json(201, { status: cluster.tokens.has(spec.token) ? { authenticated: true, user: ADA } : { user: {} } });
    },
  };
  /** A limit is reached at once while the cluster is slow, and never otherwise. */
  const startTimeLimit: StartTimeLimit = () => ({
    reached: cluster.slow === undefined ? new Promise(() => {}) : Promise.resolve(),
    cancel: () => {},
  });
  const faults: string[] = [];
  const onFault = ({ message }: Error): void => void faults.push(message);
  const source = { items, clusterUid: async () => cluster.uid, onFault };
  const asking = questions({ upstream, isDown: () => cluster.downSinceMs !== undefined, address: () => '' });
  const reviews = () =>
    reviewedTokens({
      questions: asking,
      kept: keptAnswers<UserInfo>('tokens', source),
      downSinceMs: () => cluster.downSinceMs,
      startTimeLimit,
    });
  const keys = clusterNodeKeys({
    questions: asking,
    kept: keptAnswers('machines', source),
    clock: { nowMs: () => time.nowMs },
    startTimeLimit,
  });
  const accountKeys = clusterAccountKeys({
    questions: asking,
    kept: keptAnswers('accounts', source),
    clock: { nowMs: () => time.nowMs },
  });
  let current = reviews();
  return {
    ...{ cluster, time, items, keys, accountKeys, faults },
    restart() {
      current = reviews();
    },
    async user(token: string, isBrief = false): Promise<string> {
      try {
        const answer = await current.authenticate(token, time.nowMs, { isBrief, liveMs: MINUTE_MS });
        return answer.kind === 'authenticated' ? answer.user.username : answer.kind;
      } catch (error) {
        return String((error as { status: { code: number } }).status.code);
      }
    },
  };
}

it('asks the cluster about a token once per minute, and notices that it was withdrawn', async () => {
  const { user, cluster, time } = hub();
  expect(await Promise.all([user('good'), user('good')])).toEqual(['ada', 'ada']);
  expect(await user('good')).toBe('ada');
  expect(cluster.asked).toHaveLength(1);
  cluster.tokens.clear();
  time.nowMs += MINUTE_MS;
  expect(await user('good')).toBe('refused');
});

it('does not let a known client wait for a slow cluster, and believes what the cluster answers then', async () => {
  const { user, keys, cluster, time } = hub();
  const known = async () => (await keys.keysOf('n1', { consistent: false })).length;
  expect([await user('good'), await known()]).toEqual(['ada', 1]);
  const answered = Promise.withResolvers<void>();
  cluster.slow = answered.promise;
  time.nowMs += MINUTE_MS;
  expect([await user('good'), await user('good'), await known()]).toEqual(['ada', 'ada', 1]);
  expect(cluster.asked).toHaveLength(4);
  const isSettled = await Promise.race([user('unknown').then(() => true), Promise.resolve(false)]);
  expect(isSettled).toBe(false);
  cluster.tokens.clear();
  cluster.machine = undefined;
  answered.resolve();
  cluster.slow = undefined;
  expect([await user('good'), await known()]).toEqual(['refused', 0]);
});

it('accepts a token that it saw within a day before the link was lost, also after a restart, and keeps only its hash', async () => {
  const { user, cluster, time, items, restart } = hub();
  await user('good');
  await user('brief-good');
  cluster.downSinceMs = time.nowMs + DAY_MS;
  time.nowMs += 30 * DAY_MS;
  restart();
  expect(await user('good')).toBe('ada');
  expect(await user('unknown')).toBe('503');
  expect(await user('good', true)).toBe('503');
  const stored = JSON.stringify(
    (await items.query({ table: 'control', pk: 'hub#one#tokens', consistent: true })).items,
  );
  expect(stored).toContain(createHash('sha256').update('good').digest('hex'));
  expect(stored).not.toContain('good');
  cluster.downSinceMs += 1;
  expect(await user('good')).toBe('503');
});

it('accepts nothing offline that the cluster refused last, or that another cluster accepted', async () => {
  const { user, cluster, time } = hub();
  await user('good');
  cluster.uid = 'two';
  cluster.downSinceMs = time.nowMs;
  time.nowMs += MINUTE_MS;
  expect(await user('good')).toBe('503');
  cluster.uid = 'one';
  expect(await user('good')).toBe('ada');
  cluster.downSinceMs = undefined;
  cluster.tokens.clear();
  expect(await user('good')).toBe('refused');
  cluster.downSinceMs = time.nowMs;
  time.nowMs += MINUTE_MS;
  expect(await user('good')).toBe('503');
});

it('uses keys of a machine for a minute, for ever without the cluster, and never after its Node was deleted', async () => {
  const { keys, cluster, time } = hub();
  const known = async (name = 'n1') => (await keys.keysOf(name, { consistent: false })).length;
  expect(await known()).toBe(1);
  cluster.machine = undefined;
  expect(await known()).toBe(1);
  time.nowMs += MINUTE_MS;
  expect(await known()).toBe(0);
  cluster.machine = 'n1';
  time.nowMs += MINUTE_MS;
  expect(await known()).toBe(1);
  cluster.downSinceMs = time.nowMs;
  time.nowMs += 100 * DAY_MS;
  expect(await known()).toBe(1);
  await expect(known('n2')).rejects.toThrow('cannot be verified');
  await keys.forget('n1');
  await expect(known()).rejects.toThrow('cannot be verified');
});

const answer = (status: number, body: string): UpstreamAnswer => ({ status, headers: {}, body: Buffer.from(body) });
const GARBAGE: readonly UpstreamAnswer[] = [
  answer(200, '<html>it works</html>'),
  answer(200, '{}'),
  answer(201, 'null'),
  answer(204, ''),
  answer(302, ''),
  answer(400, '{}'),
  answer(404, 'no such site'),
  answer(404, '{"message":"Not Found"}'),
];

it('forgets nothing because of an answer that is not of the cluster, and refuses no user', async () => {
  const { user, keys, accountKeys, cluster, time } = hub();
  const known = async (name = 'n1') => (await keys.keysOf(name, { consistent: false })).length;
  const keyId = thumbprintOf(ACCOUNT_KEY as NodePublicKey);
  expect([await user('good'), await known(), (await accountKeys.find(keyId))?.keyId]).toEqual(['ada', 1, keyId]);
  for (const garbage of GARBAGE) {
    cluster.garbage = garbage;
    time.nowMs += MINUTE_MS;
    const seen = [await user('good'), await user('other'), (await accountKeys.find(keyId))?.keyId];
    expect({ garbage: String(garbage.body), seen }).toEqual({
      garbage: String(garbage.body),
      seen: ['ada', '503', keyId],
    });
    expect(await known()).toBe(1);
  }
  cluster.downSinceMs = time.nowMs;
  time.nowMs += MINUTE_MS;
  expect([await user('good'), await known(), (await accountKeys.find(keyId))?.keyId]).toEqual(['ada', 1, keyId]);
});

it('uses what the cluster answers although it cannot be kept: the disk is full', async () => {
  const items = memoryItemStore();
  const full = async (): Promise<never> => {
    throw new StoreFault('unreachable', 'the disk is full', { retryable: true });
  };
  const { user, keys, faults } = hub({ ...items, write: full });
  expect([await user('good'), await user('bad')]).toEqual(['ada', 'refused']);
  expect(await keys.keysOf('n1', { consistent: false })).toHaveLength(1);
  expect(faults).toEqual(['the disk is full', 'the disk is full']);
});
