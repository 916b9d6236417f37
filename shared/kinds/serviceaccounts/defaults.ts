import { withoutEmpty } from '../../kubernetes/normal-form.ts';
import { preparesWhole } from '../served-kind.ts';
import { SERVICE_ACCOUNTS } from './resource.ts';

export const prepareServiceAccount = preparesWhole(SERVICE_ACCOUNTS, (object) =>
  withoutEmpty(object, 'secrets', 'imagePullSecrets'),
);
