import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { type Upstream, type UpstreamAnswer, UpstreamUnreachable } from '../upstream.ts';
import { clusterNodeKeys } from './cluster-keys.ts';
import { keptAnswers } from './kept-answers.ts';
import { questions } from './questions.ts';
import { reviewedTokens } from './reviewed-tokens.ts';

const ADA: UserInfo = { username: 'ada', groups: ['a'] };
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const NODE_KEY = { kty: 'OKP', crv: 'Ed25519', x: 'A'.repeat(43) };

/** A hub before a cluster that accepts `tokens`, and has one machine. */
function hub(items = memoryItemStore()) {
  const cluster = {
    tokens: new Set<string>(['good']),
    uid: 'one',
    machine: 'n1' as string | undefined,
    downSinceMs: undefined as number | undefined,
    asked: [] as string[],
  };
  const time = { nowMs: 1_000 * DAY_MS };
  const json = (status: number, body: object): UpstreamAnswer => ({
    ...{ status, headers: {}, body: Buffer.from(JSON.stringify(body)) },
  });
  const upstream: Upstream = {
    async send({ path, body }) {
      if (cluster.downSinceMs !== undefined) throw new UpstreamUnreachable('cut');
      cluster.asked.push(path.split('/').at(-1)!);
      if (!path.endsWith('tokenreviews')) {
        const isKnown = path.endsWith(`/${cluster.machine}`);
        return isKnown ? json(200, { spec: { keys: [{ publicKey: NODE_KEY }] } }) : json(404, {});
      }
      const { spec } = JSON.parse(body!.toString()) as { spec: { token: string } };
      return json(201, { status: cluster.tokens.has(spec.token) ? { authenticated: true, user: ADA } : { user: {} } });
    },
  };
  const source = { items, clusterUid: async () => cluster.uid };
  const asking = questions(upstream, () => cluster.downSinceMs !== undefined);
  const reviews = () =>
    reviewedTokens({
      questions: asking,
      kept: keptAnswers<UserInfo>('tokens', source),
      downSinceMs: () => cluster.downSinceMs,
    });
  const keys = clusterNodeKeys({
    questions: asking,
    kept: keptAnswers('machines', source),
    clock: { nowMs: () => time.nowMs },
  });
  let current = reviews();
  return {
    ...{ cluster, time, items, keys },
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
