/**
 * The table of a custom resource. Source: k8s.io/apiextensions-apiserver
 * pkg/registry/customresource/tableconvertor/tableconvertor.go.
 */

import { ageSince } from '../../kubernetes/age.ts';
import { nameColumn } from '../../kubernetes/columns.ts';
import { isJsonObject } from '../../kubernetes/json.ts';
import { recordsOf, textOf } from '../../kubernetes/normal-form.ts';
import { ageOf, nameOf } from '../cells.ts';
import type { Column, ResourceDescriptor } from '../descriptor.ts';
import type { KubeObject } from '../types.ts';
import { parseJsonPath, valuesAt } from './json-path.ts';

const AGE: Column = {
  name: 'Age',
  type: 'date',
  format: '',
  description: 'Time since the object was created.',
  priority: 0,
};

/** @param printed additionalPrinterColumns of a version; empty: the age alone */
export function tableOf(printed: unknown): Pick<ResourceDescriptor, 'columns' | 'row'> {
  const columns = recordsOf(printed);
  if (columns.length === 0)
    return { columns: [nameColumn, AGE], row: (object, nowMs) => [nameOf(object), ageOf(object, nowMs)] };
  const cells = columns.map((column) => {
    const path = parseJsonPath(textOf(column['jsonPath']));
    const type = textOf(column['type']);
    return (object: KubeObject, nowMs: number): unknown => {
      const [first] = path === undefined ? [] : valuesAt(path, object);
      return first === undefined || first === null ? null : cellOf(type, first, nowMs);
    };
  });
  return {
    columns: [
      nameColumn,
      ...columns.map((column) => ({
        name: textOf(column['name']),
        type: textOf(column['type']) as Column['type'],
        format: textOf(column['format']),
        description:
          textOf(column['description']) ||
          `Custom resource definition column (in JSONPath format): ${textOf(column['jsonPath'])}`,
        priority: Number(column['priority'] ?? 0),
      })),
    ],
    row: (object, nowMs) => [nameOf(object), ...cells.map((cell) => cell(object, nowMs))],
  };
}

/** Null for a value of another type than the column's. */
function cellOf(type: string, value: unknown, nowMs: number): unknown {
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? ageSince(value, nowMs) : null;
    default:
      return typeof value === 'string'
        ? value
        : isJsonObject(value) || Array.isArray(value)
          ? JSON.stringify(value)
          : String(value);
  }
}
