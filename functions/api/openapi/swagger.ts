/** OpenAPI v2 (Swagger 2.0) from the OpenAPI v3 documents, for clients that read JSON at /openapi/v2. */
import { defined } from '../../../shared/defined.ts';
import { isJsonObject, type JsonObject } from '../../../shared/kubernetes/json.ts';

/** The parts of an OpenAPI v3 document that have a counterpart in v2. */
export interface OpenApiV3 {
  readonly paths: JsonObject;
  readonly components: { readonly schemas: JsonObject };
}

/** One v2 document from the v3 documents of all group versions. */
export function swaggerOf(documents: readonly OpenApiV3[], serverVersion: string): JsonObject {
  const paths: JsonObject = {};
  for (const { paths: ofGroup } of documents) {
    for (const [path, item] of Object.entries(ofGroup)) paths[path] = pathItem(item as JsonObject);
  }
  const info = { title: 'Nodekeeper', version: serverVersion };
  return { swagger: '2.0', info, paths, definitions: definitionsOf(documents) };
}

export const definitionsOf = (documents: readonly OpenApiV3[]): JsonObject =>
  Object.fromEntries(
    documents.flatMap(({ components }) =>
      Object.entries(components.schemas).map(([name, schema]) => [name, definitionOf(schema as JsonObject)]),
    ),
  );

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

const KEEPS_UNKNOWN = 'x-kubernetes-preserve-unknown-fields';
export const GVK = 'x-kubernetes-group-version-kind';

/** For kubectl an object with properties has no others. Source: apiextensions pkg/controller/openapi/builder. */
const definitionOf = (schema: JsonObject): unknown =>
  schema[KEEPS_UNKNOWN] === true ? { type: 'object', [GVK]: schema[GVK] } : schemaOf(schema);

/** What v2 cannot state of a value that may be null, or of an object with unknown fields. */
function withoutUnknown({ nullable, ...schema }: JsonObject): JsonObject {
  const keepsUnknown = schema[KEEPS_UNKNOWN] === true;
  const { type, items, properties, required, ...rest } = schema;
  const isOpen = nullable === true || keepsUnknown;
  const isUntyped =
    nullable === true || (keepsUnknown && type === 'object') || (type === 'array' && (isOpen || items === undefined));
  const fields = isJsonObject(properties) ? properties : {};
  const named = Array.isArray(required)
    ? required.filter((name) => (fields[String(name)] as JsonObject | undefined)?.['nullable'] !== true)
    : [];
  return {
    ...rest,
    ...(isUntyped ? {} : defined({ type })),
    ...(isOpen ? {} : defined({ items, properties })),
    ...(named.length === 0 ? {} : { required: named }),
  };
}

/** v2 has neither `oneOf`, `anyOf`, `not` nor a `$ref` inside `allOf`, and keeps no default of a reference. */
function schemaOf(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const { allOf, oneOf, anyOf: _anyOf, not: _not, $ref, ...rest } = withoutUnknown(value);
  const [reference] = Array.isArray(allOf) ? allOf : [{ $ref }];
  const target = isJsonObject(reference) ? reference['$ref'] : undefined;
  if (typeof target === 'string') {
    const description = typeof rest['description'] === 'string' ? { description: rest['description'] } : {};
    return { ...description, $ref: target.replace(COMPONENTS, '#/definitions/') };
  }
  if (Array.isArray(oneOf) && rest['type'] === undefined && rest['x-kubernetes-int-or-string'] !== true)
    return { ...rest, type: 'string' };
  const { properties, items, additionalProperties } = rest;
  return {
    ...rest,
    ...(isJsonObject(items) ? { items: schemaOf(items) } : {}),
    ...(isJsonObject(additionalProperties) ? { additionalProperties: schemaOf(additionalProperties) } : {}),
    ...(isJsonObject(properties) ? { properties: ofEach(properties) } : {}),
  };
}

const ofEach = (properties: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, schemaOf(schema)]));
