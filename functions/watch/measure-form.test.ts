import { createHash, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { gzip } from '../../shared/gzip.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import type { Arrival } from '../../shared/watches/stream-form.ts';
import { readForm } from '../../shared/watches/stream-form-store.ts';
import { serveWatch } from './work.ts';

const START_MS = Date.UTC(2026, 0, 1);
const URL_OF_FUNCTION = 'https://function.example';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** A streaming function behind a front that delivers a chunk when `holdBytes` more were written. */
function cluster(holdBytes: number, deployment = 'first') {
  const items = memoryItemStore();
  const opened: string[] = [];
  const warned: string[] = [];
  const counted: string[] = [];
  let nowMs = START_MS;
  let front: (url: string) => Promise<Arrival> = async (url) =>
    Number(new URL(url).searchParams.get('padding')) >= holdBytes ? 'inTime' : 'late';
  const serveAs = (code: string) =>
    serveWatch({
      items,
      authenticator: staticTokenAuthenticator([{ sha256: sha256('key'), user: 'admin', groups: ['system:masters'] }]),
      tickets: { verify: async () => ({ kind: 'refused', reason: 'none' }) },
      nodeKeys: { keysOf: async () => [] },
      clock: { nowMs: () => nowMs },
      random: { uuid: () => randomUUID(), fraction: () => 0.5 },
      pause: async (milliseconds) => {
        nowMs += milliseconds;
      },
      log: { debug() {}, info() {}, warn: (message) => warned.push(message), error() {} },
      meter: { add: (name) => counted.push(name) },
      policy: defaultPolicy,
      gzip,
      openProbe: (url) => {
        opened.push(url);
        return front(url);
      },
      deployment: code,
    });
  let serve = serveAs(deployment);
  const request = (path: string, query: Record<string, string>) => ({
    method: 'GET',
    path,
    query: new URLSearchParams(query),
    headers: { authorization: 'Bearer key' },
    body: new Uint8Array(),
    sourceIp: '192.0.2.1',
  });
  return {
    opened,
    warned,
    counted,
    form: () => readForm(items),
    nowMs: () => nowMs,
    pass: (milliseconds: number) => {
      nowMs += milliseconds;
    },
    deploy: (code: string) => {
      serve = serveAs(code);
    },
    behind: (open: typeof front) => {
      front = open;
    },
    send: (path: string, query: Record<string, string>) => serve(request(path, query), nowMs + 60_000),
    /** A watch to its end, with what runs beside it. */
    async watch() {
      const query = { watch: '1', timeoutSeconds: '2', allowWatchBookmarks: 'true' };
      const answer = await serve(request('/api/v1/nodes', query), nowMs + 60_000);
      const chunks: string[] = [];
      for await (const chunk of answer.lines ?? []) chunks.push(chunk);
      await answer.measure?.(URL_OF_FUNCTION);
      return { head: answer.head, chunks };
    },
  };
}

const DAY_MS = 86_400_000;

it.each([0, 1, 16_384, 102_400])('a front that holds until %d bytes follow gets that padding', async (holdBytes) => {
  const { watch, form, opened } = cluster(holdBytes);
  const [first = ''] = (await watch()).chunks;
  expect(first).toBe(' ');
  expect(await form()).toMatchObject({ form: { kind: 'stream', paddingBytes: holdBytes }, deployment: 'first' });
  expect(opened.length).toBe([0, 1, 16_384, 102_400].indexOf(holdBytes) + 1);
  const { chunks } = await watch();
  // The end of a watch always has a byte.
  expect(chunks[0]).toBe(' '.repeat(Math.max(1, holdBytes)));
});

it('measures with the first watch of a day and of a deployment, and not again', async () => {
  const { watch, opened, pass, deploy } = cluster(0);
  for (let count = 0; count < 3; count += 1) await watch();
  expect(opened).toHaveLength(1);
  pass(DAY_MS);
  for (let count = 0; count < 3; count += 1) await watch();
  expect(opened).toHaveLength(2);
  pass(DAY_MS / 2);
  deploy('second');
  for (let count = 0; count < 3; count += 1) await watch();
  expect(opened).toHaveLength(3);
});

it('watches that begin at once measure once', async () => {
  const { watch, opened } = cluster(0);
  await Promise.all([watch(), watch(), watch()]);
  expect(opened).toHaveLength(1);
});

it('answers watches as long polls with a warning where no padding delivers, and measures again after ten minutes', async () => {
  const cut = cluster(Number.POSITIVE_INFINITY);
  await cut.watch();
  expect(await cut.form()).toMatchObject({ form: { kind: 'longPoll' } });
  expect(cut.warned).toEqual(['no padding delivers a chunk: watches are answered as long polls']);
  const { head, chunks } = await cut.watch();
  expect(chunks).toEqual([]);
  expect(head.headers['warning']).toMatch(/^299 - "this cluster cannot stream: watches end with their first changes/);
  expect(JSON.parse(String(head.body))).toMatchObject({ type: 'BOOKMARK' });
  expect(cut.counted).toEqual(['watches_as_long_polls']);
  cut.behind(async () => 'inTime');
  cut.pass(600_000);
  await cut.watch();
  expect((await cut.watch()).head.headers['warning']).toBeUndefined();
});

it('a front that cannot be reached changes nothing, and is tried again after ten minutes', async () => {
  const { watch, form, opened, warned, pass, behind } = cluster(16_384);
  behind(async () => 'failed');
  await watch();
  await watch();
  expect([await form(), opened.length, warned.length]).toEqual([undefined, 1, 1]);
  pass(600_000);
  await watch();
  expect(opened).toHaveLength(2);
});

it('opens the stream of a measurement with its id only, and writes a line of 200 bytes and its padding', async () => {
  const { watch, send, behind, opened, nowMs } = cluster(0);
  const chunks: string[] = [];
  behind(async (url) => {
    const { pathname, searchParams } = new URL(url);
    const { lines } = await send(pathname, { ...Object.fromEntries(searchParams), padding: '16384' });
    for await (const chunk of lines ?? []) chunks.push(chunk);
    return 'inTime';
  });
  await watch();
  expect(chunks.map(({ length }) => length)).toEqual([16_384, 200, 16_384]);
  const [line = ''] = chunks.filter((chunk) => chunk.trim() !== '');
  const { writtenMs } = JSON.parse(line) as { writtenMs: number };
  expect(nowMs() - writtenMs).toBeGreaterThanOrEqual(1_000);
  const { pathname, searchParams } = new URL(opened[0] ?? '');
  const refused = [
    { id: randomUUID(), padding: '0' },
    { id: searchParams.get('id') ?? '', padding: '1000000000' },
    { padding: '0' },
  ];
  for (const query of refused) expect((await send(pathname, query)).head.status).toBe(404);
});
