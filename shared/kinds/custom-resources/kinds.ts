/**
 * The kinds that definitions add, found by their paths.
 *
 * A schema is compiled once per process and content. The descriptor of a version is made again when its definition was
 * written. A path of a built-in kind never gets here, so requests for those cost nothing more.
 */

import { apiVersionOf } from '../../kubernetes/normal-form.ts';
import type { DefinitionCatalog } from '../customresourcedefinitions/catalog.ts';
import {
  type DefinitionVersion,
  isEstablished,
  type StoredDefinition,
  schemaSection,
} from '../customresourcedefinitions/definition.ts';
import type { DefinitionSections } from '../customresourcedefinitions/sections.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { compareVersions } from './compare-versions.ts';
import type { CompiledSchema } from './descriptor.ts';
import { customResourceNames } from './discovered.ts';
import type { CompilePattern, JsonSchema, SchemaNode } from './schema-node.ts';

/** JSON of the compiled schemas in memory, UTF-16 units. A compiled schema has several times as much. */
const COMPILED_CHARACTERS_MAX = 16_000_000;

/** What discovery lists of a kind. */
export type DiscoveredKind = ReturnType<typeof customResourceNames>;

export interface CustomKinds {
  /** The kind of this path, as of now. Undefined: no definition serves it. */
  find(group: string, version: string, resource: string): Promise<ResourceDescriptor | undefined>;
  /** The same by the name of the kind. */
  findKind(group: string, version: string, kind: string): Promise<ResourceDescriptor | undefined>;
  /** Every version that is served, as of now. A group has its versions in order of preference. */
  discovered(): Promise<readonly DiscoveredKind[]>;
  /** The same with schemas, for OpenAPI. */
  described(): Promise<readonly ResourceDescriptor[]>;
}

export interface CustomKindsOptions {
  readonly definitions: DefinitionCatalog;
  readonly sections: DefinitionSections;
  /** Loads the engine of patterns. */
  readonly loadPatterns: () => Promise<{ readonly compilePattern: CompilePattern }>;
}

/** For a version without a schema in the store: nothing is known of its objects. */
const NOTHING_KNOWN: JsonSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const MATCHES_ALL: CompilePattern = () => ({ kind: 'compiled', matches: () => true });

/** Few processes serve a custom resource: the others do not load what reads and validates them. */
async function loadSchemas() {
  const [{ customResourceDescriptor }, { compileSchema, hasPatterns }, { structSchemaOf }] = await Promise.all([
    import('./descriptor.ts'),
    import('./schema-node.ts'),
    import('./struct-schema.ts'),
  ]);
  return { customResourceDescriptor, compileSchema, hasPatterns, structSchemaOf };
}

const byName = (one: StoredDefinition, other: StoredDefinition): number =>
  (one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1;

export function customKinds({ definitions, sections, loadPatterns }: CustomKindsOptions): CustomKinds {
  const compiled = new Map<string, CompiledSchema>();
  let characters = 0;
  /** By definition and version; with the resourceVersion of the definition that it was made from. */
  const descriptors = new Map<string, { readonly resourceVersion: string; readonly descriptor: ResourceDescriptor }>();

  async function compiledSchema(definition: StoredDefinition, version: DefinitionVersion): Promise<CompiledSchema> {
    const key = schemaSection(version.name);
    const { kind = '' } = { ...definition.spec?.names };
    const gvk = { group: definition.spec?.group ?? '', version: version.name, kind };
    const hash = definition.sections?.find((section) => section.key === key)?.hash ?? '';
    const name = `${apiVersionOf(gvk)} ${kind} ${hash}`;
    const known = compiled.get(name);
    if (known !== undefined) return known;
    const text = (await sections.read(definition, [key])).get(key) ?? '{}';
    const { compileSchema, hasPatterns, structSchemaOf } = await loadSchemas();
    const { openAPIV3Schema = NOTHING_KNOWN } = JSON.parse(text) as { openAPIV3Schema?: JsonSchema };
    const { compilePattern } = hasPatterns(openAPIV3Schema) ? await loadPatterns() : { compilePattern: MATCHES_ALL };
    const node = compileSchema(openAPIV3Schema, compilePattern);
    // Expressions are large: they are loaded with the first schema that has any.
    const evaluateRules = node.hasRules ? (await import('./rules.ts')).rulesOf(node) : undefined;
    const schema = { node, struct: structSchemaOf(gvk, node), ...(evaluateRules && { evaluateRules }) };
    if (characters + text.length > COMPILED_CHARACTERS_MAX) {
      compiled.clear();
      characters = 0;
    }
    compiled.set(name, schema);
    characters += text.length;
    return schema;
  }

  async function descriptorOf(definition: StoredDefinition, version: DefinitionVersion): Promise<ResourceDescriptor> {
    const key = `${definition.metadata.name}/${version.name}`;
    const { resourceVersion = '' } = definition.metadata;
    const known = descriptors.get(key);
    if (known?.resourceVersion === resourceVersion) return known.descriptor;
    const schema = await compiledSchema(definition, version);
    const { customResourceDescriptor } = await loadSchemas();
    const stored = new Map<string, SchemaNode>();
    const storedVersions = new Set(definition.status?.storedVersions);
    for (const each of definition.spec?.versions ?? []) {
      if (!each.storage && !storedVersions.has(each.name)) continue;
      const { node } = await compiledSchema(definition, each);
      stored.set(apiVersionOf({ group: definition.spec?.group ?? '', version: each.name }), node);
    }
    const descriptor = customResourceDescriptor(definition, version, schema, stored);
    descriptors.set(key, { resourceVersion, descriptor });
    return descriptor;
  }

  /** Those of deleted definitions are forgotten. */
  function forget(all: readonly StoredDefinition[]): void {
    if (descriptors.size <= all.length * 2) return;
    const names = new Set(all.map(({ metadata }) => metadata.name));
    for (const key of descriptors.keys()) if (!names.has(key.slice(0, key.lastIndexOf('/')))) descriptors.delete(key);
  }

  const served = async () =>
    (await definitions.all())
      .filter(isEstablished)
      .toSorted(byName)
      .flatMap((definition) =>
        (definition.spec?.versions ?? [])
          .filter((version) => version.served)
          .toSorted((one, other) => compareVersions(one.name, other.name))
          .map((version) => ({ definition, version })),
      );

  async function findVersion(
    version: string,
    isWanted: (definition: StoredDefinition) => boolean,
  ): Promise<ResourceDescriptor | undefined> {
    const all = await definitions.all();
    forget(all);
    const definition = all.find(isWanted);
    if (definition === undefined || !isEstablished(definition)) return undefined;
    const wanted = definition.spec?.versions.find((each) => each.name === version && each.served);
    return wanted === undefined ? undefined : descriptorOf(definition, wanted);
  }

  return {
    find: (group, version, resource) =>
      findVersion(version, ({ metadata }) => metadata.name === `${resource}.${group}`),
    // Of two definitions of a group with the same kind, one is established.
    findKind: (group, version, kind) =>
      findVersion(
        version,
        (each) => each.spec?.group === group && each.spec.names.kind === kind && isEstablished(each),
      ),
    discovered: async () => (await served()).map(({ definition, version }) => customResourceNames(definition, version)),
    async described() {
      const all: ResourceDescriptor[] = [];
      for (const { definition, version } of await served()) all.push(await descriptorOf(definition, version));
      return all;
    },
  };
}
