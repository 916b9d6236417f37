/**
 * A watch of all Nodes of any Kubernetes API, as a client library does it: list, watch from there, follow a redirect
 * with the same token, resume after its end, list again when the version is too old. Calls back for each Node.
 */
import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import type { KubeNode } from '../shared/kinds/types.ts';

export interface NodeWatch {
  /** Why watches ended, and how often. */
  readonly ends: ReadonlyMap<string, number>;
  stop(): void;
}

export interface WatchTarget {
  readonly url: string;
  /** PEM text or the path of a PEM file. */
  readonly ca?: string | undefined;
  readonly token: string;
}

const PAGE_LIMIT = 500;
const PAGES_MAX = 1_000;
const REDIRECTS_MAX = 3;
const WATCH_SECONDS = 300;
/** Before a watch is begun again. */
const PAUSE_MS = 500;

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: KubeNode & { readonly code?: number };
}

/** Resolves after the callbacks of the first list. */
export async function watchNodes(
  target: WatchTarget,
  onNode: (node: KubeNode, kind: 'present' | 'deleted') => void,
  /** After each whole list: names of all there are. */
  onList: (names: ReadonlySet<string>) => void = () => {},
): Promise<NodeWatch> {
  const ca = target.ca === undefined || target.ca.includes('-----BEGIN') ? target.ca : readFileSync(target.ca, 'utf8');
  const stopping = new AbortController();
  const ends = new Map<string, number>();

  function open(url: URL, redirects = 0): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
      const sent = send(
        url,
        {
          headers: { accept: 'application/json', authorization: `Bearer ${target.token}` },
          signal: stopping.signal,
          ...(ca === undefined ? {} : { ca }),
        },
        (answer) => {
          const { statusCode = 0, headers } = answer;
          if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined && redirects < REDIRECTS_MAX) {
            answer.resume();
            resolve(open(new URL(headers.location, url), redirects + 1));
          } else if (statusCode === 200) resolve(answer);
          else {
            answer.resume();
            reject(new Error(`${statusCode} to ${url.pathname}`));
          }
        },
      );
      sent.on('error', reject);
      sent.end();
    });
  }

  const nodesUrl = (query: Record<string, string>): URL =>
    new URL(`${target.url.replace(/\/$/, '')}/api/v1/nodes?${new URLSearchParams(query)}`);

  async function list(): Promise<string> {
    let next: string | undefined;
    const names = new Set<string>();
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const answer = await open(
        nodesUrl({ limit: String(PAGE_LIMIT), ...(next === undefined ? {} : { continue: next }) }),
      );
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part as Buffer);
      const read = JSON.parse(Buffer.concat(parts).toString('utf8')) as {
        readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
        readonly items: readonly KubeNode[];
      };
      for (const node of read.items) {
        names.add(node.metadata.name ?? '');
        onNode(node, 'present');
      }
      next = read.metadata.continue;
      if (next !== undefined && next !== '') continue;
      onList(names);
      return read.metadata.resourceVersion;
    }
    throw new Error('a list has more pages than are read');
  }

  /** Where to go on; undefined: by another list. */
  async function follow(from: string): Promise<string | undefined> {
    const query = {
      watch: '1',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(WATCH_SECONDS),
      resourceVersion: from,
    };
    const answer = await open(nodesUrl(query));
    let version = from;
    let rest = '';
    for await (const part of answer.setEncoding('utf8')) {
      const lines = (rest + (part as string)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '') continue;
        const { type, object } = JSON.parse(line) as WatchEvent;
        if (type === 'ERROR') throw new Error(`watch error ${object.code}`);
        version = object.metadata.resourceVersion ?? version;
        if (type !== 'BOOKMARK') onNode(object, type === 'DELETED' ? 'deleted' : 'present');
      }
    }
    return version;
  }

  async function run(first: string): Promise<void> {
    let version: string | undefined = first;
    while (!stopping.signal.aborted) {
      let why = 'ended by the server';
      try {
        version = await follow(version ?? (await list()));
      } catch (error) {
        why = error instanceof Error ? error.message : String(error);
        version = undefined;
      }
      if (stopping.signal.aborted) return;
      ends.set(why, (ends.get(why) ?? 0) + 1);
      await pause(PAUSE_MS);
    }
  }

  const running = run(await list());
  return {
    ends,
    stop() {
      stopping.abort();
      void running;
    },
  };
}
