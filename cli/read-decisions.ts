/** Reads decisions of the controllers, page by page. */
import type { DecisionRecord } from '../shared/decisions/decision-record.ts';
import type { SendToApi } from './api-request.ts';
import { CommandError } from './command.ts';
import type { ApiAccess } from './kubeconfig.ts';

const DECISIONS = '/apis/nodekeeper.dev/v1alpha1/decisions';
export const PAGE_ITEMS = 500;
export const PAGES_MAX = 40;
const UNITS_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

export interface Asked {
  readonly access: ApiAccess;
  readonly send: SendToApi;
  readonly sinceMs: number;
}

interface DecisionList {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly spec: DecisionRecord & { readonly at: string };
  }[];
  readonly metadata?: { readonly continue?: string };
}

export interface ReadDecisions {
  /** Not in order. */
  readonly found: readonly { readonly name: string; readonly record: DecisionRecord }[];
  /** There are more than one read returns. */
  readonly isCut: boolean;
}

/** @param selector a field selector that names what they are about; absent: all of them */
export async function readDecisions(
  { access, send, sinceMs }: Asked,
  selector: string | undefined,
): Promise<ReadDecisions> {
  const found: { name: string; record: DecisionRecord }[] = [];
  let after = '';
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = new URLSearchParams({ limit: String(PAGE_ITEMS) });
    if (selector !== undefined) query.set('fieldSelector', selector);
    if (after !== '') query.set('continue', after);
    const { items, metadata } = (await send(access, { method: 'GET', path: `${DECISIONS}?${query}` })) as DecisionList;
    for (const { metadata: named, spec } of items) {
      const { at: _, ...record } = spec;
      if (record.atMs >= sinceMs) found.push({ name: named.name, record: record as DecisionRecord });
    }
    after = metadata?.continue ?? '';
    if (after === '') return { found, isCut: false };
  }
  return { found, isCut: true };
}

/** @throws CommandError when the text is no duration */
export function durationMs(text: string, usage: string): number {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  if (match === null) throw new CommandError(`--since must be a duration such as 30m, 24h or 7d, not ${text}`, usage);
  return Number(match[1]) * UNITS_MS[match[2] as keyof typeof UNITS_MS];
}
