/** The machine `edge-1`: its agent uses the API in memory with its own credential. */
import type { KubeAnswer, KubeRequest } from '../../agent/ports/kube-api.ts';
import { answered } from './agent-api.ts';
import type { ApiInMemory } from './api-in-memory.ts';

const TOKEN = 'edge-1-token';

/** For `apiInMemory`. */
export const EDGE_1 = {
  [TOKEN]: { name: 'system:node:edge-1', groups: ['system:nodes', 'system:authenticated'] },
};

export async function sendAsEdge1(
  server: ApiInMemory,
  { method, path, body, contentType = 'application/json' }: KubeRequest,
): Promise<KubeAnswer> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const answer = await server.send(method, path, { body, contentType, headers });
  return answered(answer.code, answer.body);
}
