/**
 * The Kubernetes API over TLS on the memory store: verbs, validation, printing and storing as deployed, without engine,
 * controllers and bundles. Starts in milliseconds; what kubectl prints can be tried while the rest is being changed.
 */

import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { composeApi } from '../../functions/api/work.ts';
import { watchLines } from '../../functions/watch/watch-stream.ts';
import { inProcess } from '../../server/system.ts';
import { accountTokenIssuer, accountTokens } from '../../shared/access/account-tokens.ts';
import { bearerSchemes, staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { accountKeys, keepAccountKey } from '../../shared/access/process-key-store.ts';
import { systemClock, systemRandom } from '../../shared/clock.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { makeAuthority, makeServerCertificate } from '../../shared/host/certificate.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import type { HttpResponse } from '../../shared/kubernetes/http.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';

/** Longest watch. Milliseconds. */
const WATCH_MS = 120_000;

export interface MemoryApi {
  readonly kubeconfig: string;
  /** What the API logged, mostly faults of ours. */
  readonly log: readonly string[];
  stop(): Promise<void>;
}

/** `items`: what is there already. The context `viewer` is that of a user who may only read. */
export async function startMemoryApi(
  items: ItemStore = memoryItemStore(),
  policy: Policy = defaultPolicy,
): Promise<MemoryApi> {
  const log: string[] = [];
  const note = (message: string, fields?: Record<string, unknown>): void => {
    const error = fields?.['error'];
    log.push(`${message} ${error instanceof Error ? error.stack : ''} ${JSON.stringify(fields)}`);
  };
  const token = randomBytes(16).toString('hex');
  // As some tokens in base64url do, it begins with a hyphen.
  const viewerToken = `-${randomBytes(16).toString('hex')}`;
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
  const objects = clusterObjects({ items, clock: systemClock, random: systemRandom });
  const streams = new WeakMap<HttpResponse, AsyncGenerator<string>>();
  const serve = composeApi({
    items,
    accountTokens: { issuer: accountTokenIssuer(keepAccountKey(items)), keys: accountKeys(items) },
    authenticator: bearerSchemes(
      [accountTokens({ keys: accountKeys(items), find: (ref) => objects.get(ref) })],
      staticTokenAuthenticator([
        { sha256: hash(token), user: 'admin', groups: ['system:masters'] },
        { sha256: hash(viewerToken), user: 'viewer', groups: ['nodekeeper:viewers'] },
      ]),
    ),
    clock: systemClock,
    random: systemRandom,
    pause,
    log: { debug: note, info: note, warn: note, error: note },
    policy,
    async answerWatch(source, watch) {
      const answer = { status: 200, headers: { 'content-type': 'application/json' }, body: '' };
      streams.set(
        answer,
        watchLines(source, watch, {
          deadlineMs: systemClock.nowMs() + WATCH_MS,
          quietMs: WATCH_MS,
          paddingBytes: 1,
          findRefusal: undefined,
        }),
      );
      return answer;
    },
    ...inProcess,
  });
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  const certificate = await makeServerCertificate(authority, {
    names: ['127.0.0.1', 'localhost'],
    nowMs,
    validDays: 1,
  });
  const server = createServer(
    { cert: certificate.certificatePem, key: certificate.privateKeyPem },
    (incoming, outgoing) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', async () => {
        const [path = '/', query = ''] = (incoming.url ?? '/').split('?', 2);
        const headers = Object.fromEntries(
          Object.entries(incoming.headers).map(([name, value]) => [
            name,
            Array.isArray(value) ? value.join(',') : (value ?? ''),
          ]),
        );
        const answer = await serve({
          method: incoming.method ?? 'GET',
          path,
          query: new URLSearchParams(query),
          headers,
          body: Buffer.concat(chunks),
          sourceIp: '127.0.0.1',
        });
        outgoing.writeHead(answer.status, answer.headers);
        const lines = streams.get(answer);
        if (lines === undefined) {
          outgoing.end(answer.body);
          return;
        }
        outgoing.flushHeaders();
        for await (const line of lines) {
          if (outgoing.destroyed) break;
          outgoing.write(line);
        }
        outgoing.end();
      });
    },
  );
  const port = await listenOnLoopback(server);

  const dir = mkdtempSync(join(tmpdir(), 'nk-memory-'));
  const kubeconfig = join(dir, 'kubeconfig');
  const ca = Buffer.from(authority.certificatePem).toString('base64');
  const url = `https://127.0.0.1:${port}`;
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: ['test', 'viewer'].map((name) => ({
        name,
        context: { cluster: 'test', user: name === 'test' ? 'admin' : name },
      })),
      clusters: [{ name: 'test', cluster: { server: url, 'certificate-authority-data': ca } }],
      users: [
        { name: 'admin', user: { token } },
        { name: 'viewer', user: { token: viewerToken } },
      ],
    }),
  );
  return {
    kubeconfig,
    log,
    stop: () =>
      new Promise((resolve) => {
        rmSync(dir, { recursive: true });
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
