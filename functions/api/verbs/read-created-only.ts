import { refuseUnacceptable } from '../../../shared/api/response-body.ts';
import { schemaFor } from '../../../shared/kinds/schemas.ts';
import type { HttpRequest } from '../../../shared/kubernetes/http.ts';
import type { ResourceTarget } from '../../../shared/kubernetes/request.ts';
import { type DecodedObject, decodeObject, fieldValidationOf } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { readObject } from './read-object.ts';

/** A resource that can only be created and is never stored. */
export interface CreatedOnly {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly ['create'];
}

/** The object of its creation, normalised. @throws StatusError 400, 405, 406, 413, 415 */
export async function readCreatedOnly(
  created: CreatedOnly,
  target: ResourceTarget,
  request: HttpRequest,
): Promise<DecodedObject> {
  const isPlaced = target.name === '' && target.subresource === '' && created.namespaced === (target.namespace !== '');
  if (!isPlaced || request.method !== 'POST') throw status.methodNotAllowedHere();
  refuseUnacceptable(request.headers['accept'] ?? '', false);
  const { kind, group, version } = created;
  const read = await readObject(request.headers, request.body, { apiVersion: `${group}/${version}`, kind });
  return decodeObject(created, schemaFor(created), read, fieldValidationOf(request.query, 'CreateOptions'));
}
