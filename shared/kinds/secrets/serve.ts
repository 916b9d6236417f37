import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty } from '../../kubernetes/normal-form.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import { DEFAULT_SECRET_TYPE, validateSecret } from '../configmaps/validate.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesWhole, servedKind } from '../served-kind.ts';
import type { KubeSecret } from '../types.ts';
import { SECRETS } from './resource.ts';

/** stringData is merged into data and never stored. Source: pkg/apis/core/v1/conversion.go. */
function storedSecret({ stringData = {}, ...secret }: KubeSecret): KubeSecret {
  const texts = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  const data = { ...secret.data, ...Object.fromEntries(texts) };
  return withoutEmpty({ ...secret, data, type: secret.type || DEFAULT_SECRET_TYPE }, 'data');
}

/** Encrypted at rest with the key of the table. No log line, event or decision contains data of a Secret. */
export const secrets: ResourceDescriptor = servedKind(SECRETS, {
  columns: [
    nameColumn,
    textColumn('Type', 'What the data is used for.'),
    integerColumn('Data', 'Number of keys.'),
    ageColumn,
  ],
  row: (object: KubeSecret, nowMs) => [
    nameOf(object),
    object.type ?? '',
    Object.keys(object.data ?? {}).length,
    ageOf(object, nowMs),
  ],
  prepare: preparesWhole(SECRETS, storedSecret),
  validate: validateSecret,
});
