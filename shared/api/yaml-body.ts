/** Bodies in YAML. Upstream accepts them in every write (Kubernetes API Concepts, "Alternate representations"). */

import { inUnicode } from '../kubernetes/json.ts';
import { mediaTypeOf, refuseTooLarge } from '../kubernetes/request/body.ts';
import type { HttpRequest } from '../kubernetes/request/http.ts';
import * as status from '../kubernetes/status.ts';

export type YamlResult =
  | { readonly kind: 'read'; readonly value: unknown }
  | { readonly kind: 'malformed'; readonly message: string };

/** Reads one YAML document. A duplicate key is malformed. */
export type ReadYaml = (text: string) => YamlResult | Promise<YamlResult>;

const YAML = 'application/yaml';

/**
 * The request with its body in JSON, which every verb reads. Other bodies are left as they are. A patch is never YAML,
 * except an apply, which has a media type of its own.
 *
 * @throws StatusError 400 for malformed YAML and for a duplicate key, 413
 */
export async function withJsonBody(
  request: HttpRequest,
  readYaml: ReadYaml | undefined,
  bytesMax?: number,
): Promise<HttpRequest> {
  const { body } = request;
  if (mediaTypeOf(request.headers) !== YAML || request.method === 'PATCH' || body.byteLength === 0) return request;
  refuseTooLarge(body, bytesMax);
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  if (readYaml === undefined) throw status.unsupportedMediaType(['application/json']);
  const read = await readYaml(text);
  if (read.kind === 'malformed') throw status.badRequest(`error decoding YAML: ${read.message}`);
  return {
    ...request,
    headers: { ...request.headers, 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(inUnicode(text, read.value))),
  };
}
