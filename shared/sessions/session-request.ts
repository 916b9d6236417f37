/**
 * A session that `nodekeeper serve` asks of an agent, over the line that the agent keeps open. The agent answers by a
 * connection of its own, which names the id. A machine has no port for requests (docs/decisions/0057).
 *
 *   GET /apis/nodekeeper.dev/v1alpha1/nodesessions/<node>        the line, a WebSocket: a LineMessage per message
 *   GET /apis/nodekeeper.dev/v1alpha1/nodesessions/<node>/<id>   one session, a WebSocket: messages of channels.ts
 */
import { isJsonObject } from '../kubernetes/json.ts';

/** What both sides speak: a server of another protocol refuses it. */
export const SESSION_PROTOCOL = 'v1.sessions.nodekeeper.dev';

export type SessionPurpose =
  | {
      readonly kind: 'exec';
      readonly container: string;
      readonly command: readonly string[];
      readonly stdin: boolean;
      readonly tty: boolean;
    }
  | { readonly kind: 'attach'; readonly container: string; readonly stdin: boolean }
  /** One connection to a port of the pod. */
  | { readonly kind: 'forward'; readonly port: number };

export interface SessionRequest {
  readonly id: string;
  readonly podUid: string;
  readonly purpose: SessionPurpose;
}

export const linePath = (nodeName: string): string =>
  `/apis/nodekeeper.dev/v1alpha1/nodesessions/${encodeURIComponent(nodeName)}`;

export const sessionPath = (nodeName: string, id: string): string => `${linePath(nodeName)}/${encodeURIComponent(id)}`;

export const isPort = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 65_535;

/**
 * What the API sends on a line. `ended`: the connection of that session is closed. An agent that does not read it,
 * because its command reads nothing, would not learn that otherwise.
 */
export type LineMessage = { readonly session: SessionRequest } | { readonly ended: string };

/** undefined: malformed, or of a later version. */
export function lineMessageOf(text: string): LineMessage | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(parsed)) return undefined;
  const { session, ended } = parsed;
  if (typeof ended === 'string') return { ended };
  const request = isJsonObject(session) ? sessionRequestOf(session) : undefined;
  return request === undefined ? undefined : { session: request };
}

function sessionRequestOf(item: Readonly<Record<string, unknown>>): SessionRequest | undefined {
  const { id, podUid } = item;
  const purpose = isJsonObject(item['purpose']) ? purposeOf(item['purpose']) : undefined;
  if (typeof id !== 'string' || typeof podUid !== 'string' || purpose === undefined) return undefined;
  return { id, podUid, purpose };
}

function purposeOf(item: Readonly<Record<string, unknown>>): SessionPurpose | undefined {
  const { kind, container, command, port } = item;
  const stdin = item['stdin'] === true;
  if (kind === 'forward') return isPort(port) ? { kind, port } : undefined;
  if (typeof container !== 'string') return undefined;
  if (kind === 'attach') return { kind, container, stdin };
  if (kind !== 'exec' || !Array.isArray(command)) return undefined;
  const words: readonly unknown[] = command;
  if (!words.every((word) => typeof word === 'string')) return undefined;
  return { kind, container, command: words, stdin, tty: item['tty'] === true };
}
