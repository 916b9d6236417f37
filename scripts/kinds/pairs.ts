/** Upstream's own objects, api/testdata/HEAD: one per kind, in JSON and in protobuf, with a value in every field. */

import { messages } from '../../shared/kinds/messages.ts';
import { schemaOf } from '../../shared/kinds/schemas.ts';
import { decodeStrict } from '../../shared/kubernetes/decode.ts';
import type { JsonObject } from '../../shared/kubernetes/json.ts';
import { decodeProtobuf } from '../../shared/kubernetes/protobuf.ts';
import type { LeftOut } from './roots.ts';

export interface Pair {
  readonly name: string;
  readonly json: string;
  readonly protobuf: Uint8Array;
}

/** What is not read as upstream wrote it, fields and their order included. Kinds that are not served are skipped. */
export function pairFaults(pairs: readonly Pair[], leftOut: LeftOut): string[] {
  const dropped = new Set(Object.keys(leftOut).map((path) => path.slice(path.lastIndexOf('.') + 1)));
  return pairs.flatMap(({ name, json, protobuf }) => {
    const given = JSON.parse(json, (key, value: unknown) => (dropped.has(key) ? undefined : value)) as JsonObject;
    const { apiVersion, kind, ...rest } = given;
    const schema = schemaOf(String(apiVersion), String(kind));
    if (schema === undefined) return [];
    const wanted = JSON.stringify({ apiVersion, kind, ...rest });
    const readAs = (value: unknown): string => JSON.stringify(decodeStrict(schema, value).value);
    const faults = readAs(given) === wanted ? [] : [`${name}: its JSON is read as another object`];
    if (messages.messageOfKind(String(apiVersion), String(kind)) === undefined) return faults;
    const decoded = decodeProtobuf(messages, protobuf);
    const isSame = decoded.kind === 'decoded' && readAs(decoded.object) === wanted;
    return isSame ? faults : [...faults, `${name}: its protobuf is read as another object`];
  });
}
