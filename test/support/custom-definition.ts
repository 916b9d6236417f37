/** CustomResourceDefinitions for tests. */

import type { JsonSchema } from '../../shared/kinds/custom-resources/schema-node.ts';
import type {
  DefinitionVersion,
  KubeCustomResourceDefinition,
} from '../../shared/kinds/customresourcedefinitions/definition.ts';

export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
export const widgetsIn = (namespace: string, version = 'v1'): string =>
  `/apis/example.com/${version}/namespaces/${namespace}/widgets`;

/** A widget has a size, a colour with a default, parts with keys, and what else it likes below `free`. */
export const WIDGET_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'integer', minimum: 1, maximum: 100, description: 'How large it is.' },
        colour: { type: 'string', default: 'red', enum: ['red', 'blue'] },
        code: { type: 'string', pattern: '^[a-z]{1,5}$', nullable: true },
        replicas: { type: 'integer' },
        port: { 'x-kubernetes-int-or-string': true },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        parts: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: { type: 'string' }, count: { type: 'integer', default: 1 } },
          },
        },
      },
    },
    status: {
      type: 'object',
      properties: {
        replicas: { type: 'integer', minimum: 0 },
        selector: { type: 'string' },
        phase: { type: 'string' },
      },
    },
  },
};

export const widgetVersion = (name: string, more: Partial<DefinitionVersion> = {}): DefinitionVersion => ({
  name,
  served: true,
  storage: true,
  schema: { openAPIV3Schema: WIDGET_SCHEMA },
  subresources: {
    status: {},
    scale: {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    },
  },
  additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
  selectableFields: [{ jsonPath: '.spec.colour' }],
  ...more,
});

export const widgetDefinition = (
  versions: DefinitionVersion[] = [widgetVersion('v1')],
  names: Partial<NonNullable<KubeCustomResourceDefinition['spec']>['names']> = {},
): KubeCustomResourceDefinition => {
  const all = { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], categories: ['all'], ...names };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${all.plural}.example.com` },
    spec: { group: 'example.com', scope: 'Namespaced', names: all, versions },
  };
};

export const widget = (name: string, spec: object = { size: 1 }, version = 'v1') => ({
  apiVersion: `example.com/${version}`,
  kind: 'Widget',
  metadata: { name },
  spec,
});

/** A schema with texts that do not compress well, of about so many characters. */
export function longSchema(characters: number): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  let state = 1;
  for (let index = 0; index * 250 < characters; index += 1) {
    let description = '';
    while (description.length < 200) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      description += state.toString(36);
    }
    properties[`field${index}`] = { type: 'string', description };
  }
  return { type: 'object', properties: { spec: { type: 'object', properties } } };
}
