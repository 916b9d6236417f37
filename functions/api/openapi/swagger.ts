/** OpenAPI v2 (Swagger 2.0) from the OpenAPI v3 documents, for clients that read JSON at /openapi/v2. */
import { isJsonObject, type JsonObject } from '../../../shared/kubernetes/json.ts';

/** The parts of an OpenAPI v3 document that have a counterpart in v2. */
export interface OpenApiV3 {
  readonly paths: JsonObject;
  readonly components: { readonly schemas: JsonObject };
}

/** One v2 document from the v3 documents of all group versions. */
export function swaggerOf(documents: readonly OpenApiV3[], serverVersion: string): JsonObject {
  const paths: JsonObject = {};
  const definitions: JsonObject = {};
  for (const { paths: ofGroup, components } of documents) {
    for (const [path, item] of Object.entries(ofGroup)) paths[path] = pathItem(item as JsonObject);
    for (const [name, schema] of Object.entries(components.schemas)) definitions[name] = schemaOf(schema);
  }
  return { swagger: '2.0', info: { title: 'Nodekeeper', version: serverVersion }, paths, definitions };
}

function pathItem(item: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(item).map(([key, value]) =>
      key === 'parameters' ? [key, parametersOf(value)] : [key, operationOf(value as JsonObject)],
    ),
  );
}

/** A body is a parameter in v2, and its media types are those of the operation. */
function operationOf({ requestBody, parameters = [], responses, ...rest }: JsonObject): JsonObject {
  const body = isJsonObject(requestBody) ? requestBody : undefined;
  const [consumes, schema] = contentOf(body);
  const required = body?.['required'] === true ? { required: true } : {};
  return {
    ...rest,
    consumes: consumes.length > 0 ? consumes : ['*/*'],
    produces: ['application/json'],
    schemes: ['https'],
    parameters: [
      ...(body === undefined ? [] : [{ name: 'body', in: 'body', ...required, schema }]),
      ...parametersOf(parameters),
    ],
    responses: Object.fromEntries(
      Object.entries(responses as JsonObject).map(([code, response]) => {
        const [, answered] = contentOf(response as JsonObject);
        return [code, { description: 'OK', ...(answered === undefined ? {} : { schema: answered }) }];
      }),
    ),
  };
}

function contentOf(holder: JsonObject | undefined): [mediaTypes: string[], schema: unknown] {
  const content = holder?.['content'];
  if (!isJsonObject(content)) return [[], undefined];
  const [first] = Object.values(content);
  return [Object.keys(content), schemaOf(isJsonObject(first) ? first['schema'] : undefined)];
}

const parametersOf = (parameters: unknown): unknown[] =>
  (Array.isArray(parameters) ? parameters : []).map(({ schema, ...rest }: JsonObject) => ({
    ...rest,
    ...(isJsonObject(schema) ? schema : {}),
  }));

const COMPONENTS = '#/components/schemas/';

/**
 * v2 has neither `oneOf`, `anyOf`, `not`, `nullable` nor a `$ref` inside `allOf`, and keeps no default of a reference.
 */
function schemaOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(schemaOf);
  if (!isJsonObject(value)) return value;
  const { allOf, oneOf, anyOf: _anyOf, not: _not, nullable: _nullable, $ref, ...rest } = value;
  const [reference] = Array.isArray(allOf) ? allOf : [{ $ref }];
  const target = isJsonObject(reference) ? reference['$ref'] : undefined;
  if (typeof target === 'string') {
    const description = typeof rest['description'] === 'string' ? { description: rest['description'] } : {};
    return { ...description, $ref: target.replace(COMPONENTS, '#/definitions/') };
  }
  if (Array.isArray(oneOf) && rest['type'] === undefined && rest['x-kubernetes-int-or-string'] !== true)
    return { ...rest, type: 'string' };
  return Object.fromEntries(Object.entries(rest).map(([key, inner]) => [key, schemaOf(inner)]));
}
