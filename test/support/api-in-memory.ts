/** The Kubernetes API as a function: requests in, answers out, over a map and a clock that only tests move. */
import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { type ApiOptions, composeApiAndAdmission } from '../../functions/api/work.ts';
import { inProcess } from '../../server/system.ts';
import { accountTokenIssuer, accountTokens } from '../../shared/access/account-tokens.ts';
import type { AuditTrail } from '../../shared/access/audit.ts';
import { bearerSchemes, staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { accountKeys, keepAccountKey } from '../../shared/access/process-key-store.ts';
import type { RequestLimits } from '../../shared/access/request-throttle.ts';
import type { AnswerWatch } from '../../shared/api/call.ts';
import type { Clock } from '../../shared/clock.ts';
import { defined } from '../../shared/defined.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import type { ApiAddress } from '../../shared/kinds/namespaces/contents.ts';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { HttpResponse } from '../../shared/kubernetes/http.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';

export interface ApiAnswer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly bytes: Uint8Array;
  /** Parsed JSON; undefined where the body is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly body: any;
}

export interface Send {
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiInMemory {
  send(method: string, pathAndQuery: string, send?: Send): Promise<ApiAnswer>;
  readonly items: ItemStore;
  /** Faults of ours that were logged. */
  readonly faults: readonly string[];
  nowMs(): number;
  /** Policies and webhooks for a write that is no request. */
  readonly admission: ReturnType<typeof composeApiAndAdmission>['admission'];
  advance(milliseconds: number): void;
  /** Runs when the clock has come this far, within somebody's pause. */
  at(afterMs: number, what: () => Promise<unknown>): void;
}

const TOKEN = 'token';
const START_MS = Date.UTC(2026, 0, 1);

export function apiInMemory(
  options: {
    readonly groups?: readonly string[];
    /** More users: by their token, which they send themselves. */
    readonly users?: Readonly<Record<string, { readonly name: string; readonly groups: readonly string[] }>>;
    readonly items?: ItemStore;
    readonly seed?: number;
    readonly auditTrail?: AuditTrail;
    readonly limits?: RequestLimits;
    readonly busyMs?: () => number;
    readonly policy?: Partial<Policy>;
    readonly apiAuthorities?: () => string;
    readonly apiAddress?: ApiAddress;
    /** Absent: watches are long polls. */
    readonly answerWatch?: AnswerWatch;
    /** Absent: a clock of its own. Pauses and `advance` are added to it. */
    readonly clock?: Clock;
    /**
     * Absent: the same uids in each run. Where pods are processes, their uids must be unique on the machine
     * (test/contract/pod-runtime.ts).
     */
    readonly uuid?: () => string;
    /** Absent: no admission webhooks are called. */
    readonly webhooksOf?: ApiOptions['webhooksOf'];
  } = {},
): ApiInMemory {
  const items = options.items ?? memoryItemStore();
  const faults: string[] = [];
  const note = (message: string, fields?: Record<string, unknown>): void => {
    const error = fields?.['error'];
    faults.push(`${message} ${error instanceof Error ? `${error.stack} ${String(error.cause ?? '')}` : ''}`);
  };
  const base: Clock = options.clock ?? { nowMs: () => START_MS };
  let passedMs = 0;
  const clock: Clock = { nowMs: () => base.nowMs() + passedMs };
  let uuids = 0;
  let state = options.seed ?? 1;
  const planned: { atMs: number; what: () => Promise<unknown> }[] = [];
  const countedUuid = (): string => {
    uuids += 1;
    return `00000000-0000-4000-8000-${String(uuids).padStart(12, '0')}`;
  };
  const { uuid = countedUuid } = options;
  const objects = clusterObjects({ items, clock, random: { uuid, fraction: () => 0.5 } });
  const staticTokens = staticTokenAuthenticator([
    {
      sha256: createHash('sha256').update(TOKEN).digest('hex'),
      user: 'tester',
      groups: options.groups ?? ['system:masters'],
    },
    ...Object.entries(options.users ?? {}).map(([token, { name, groups }]) => ({
      sha256: createHash('sha256').update(token).digest('hex'),
      user: name,
      groups,
    })),
  ]);
  const { serve, admission } = composeApiAndAdmission({
    items,
    accountTokens: { issuer: accountTokenIssuer(keepAccountKey(items)), keys: accountKeys(items) },
    authenticator: bearerSchemes(
      [accountTokens({ keys: accountKeys(items), find: (ref) => objects.get(ref) })],
      staticTokens,
    ),
    clock,
    random: {
      uuid,
      fraction: () => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return state / 2 ** 32;
      },
    },
    async pause(milliseconds) {
      const waitUntil = (atMs: number): void => {
        passedMs = Math.max(passedMs, atMs - base.nowMs());
      };
      const untilMs = clock.nowMs() + milliseconds;
      for (;;) {
        planned.sort((one, other) => one.atMs - other.atMs);
        const next = planned[0];
        if (next === undefined || next.atMs > untilMs) break;
        planned.shift();
        waitUntil(next.atMs);
        await next.what();
      }
      waitUntil(untilMs);
      await turn();
    },
    log: { debug: () => {}, info: () => {}, warn: note, error: note },
    policy: { ...defaultPolicy, ...options.policy },
    ...inProcess,
    ...defined({
      auditTrail: options.auditTrail,
      limits: options.limits,
      busyMs: options.busyMs,
      answerWatch: options.answerWatch,
      webhooksOf: options.webhooksOf,
      apiAuthorities: options.apiAuthorities,
      apiAddress: options.apiAddress,
    }),
  });
  return {
    items,
    faults,
    nowMs: clock.nowMs,
    admission,
    advance(milliseconds) {
      passedMs += milliseconds;
    },
    at(afterMs, what) {
      planned.push({ atMs: clock.nowMs() + afterMs, what });
    },
    async send(method, pathAndQuery, { body, contentType, accept, headers = {} } = {}) {
      const [path = '', query = ''] = pathAndQuery.split('?', 2);
      const payload =
        body === undefined
          ? new Uint8Array()
          : body instanceof Uint8Array
            ? body
            : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
      const answer = await serve({
        method,
        path,
        query: new URLSearchParams(query),
        headers: {
          authorization: `Bearer ${TOKEN}`,
          'user-agent': 'tester/1',
          ...(contentType === undefined ? {} : { 'content-type': contentType }),
          ...(accept === undefined ? {} : { accept }),
          ...headers,
        },
        body: payload,
        sourceIp: '192.0.2.9',
      });
      return readLazily(answer);
    },
  };
}

/** Most answers are read in one form only. */
function readLazily({ status, headers, body }: HttpResponse): ApiAnswer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  let text: string | undefined;
  let parsed: { readonly value: unknown } | undefined;
  return {
    code: status,
    headers,
    bytes,
    get text() {
      text ??= Buffer.from(bytes).toString('utf8');
      return text;
    },
    get body() {
      parsed ??= { value: jsonIn(this.text) };
      return parsed.value;
    },
  };
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Lines of a watch. */
export const eventsOf = (answer: ApiAnswer): { type: string; object: KubeObject }[] =>
  answer.text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { type: string; object: KubeObject });

export const MERGE = 'application/merge-patch+json';
export const STRATEGIC = 'application/strategic-merge-patch+json';
export const JSON_PATCH = 'application/json-patch+json';
export const APPLY = 'application/apply-patch+yaml';
export const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

export const NODES = '/api/v1/nodes';
export const podsIn = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
export const node = (name: string, more: Partial<KubeObject> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  ...more,
  metadata: { name, ...more.metadata },
});
export const pod = (name: string, more: Partial<KubeObject> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  ...more,
  metadata: { name, ...more.metadata },
  spec: { containers: [{ name: 'main', image: 'registry.example/app:1' }], ...more.spec },
});
export const READY = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
