import { withoutEmpty } from '../../kubernetes/normal-form.ts';
import { preparesWhole } from '../prepare.ts';
import { SERVICE_ACCOUNTS } from './resource.ts';

export const prepareServiceAccount = preparesWhole(SERVICE_ACCOUNTS, (object) =>
  withoutEmpty(object, 'secrets', 'imagePullSecrets'),
);
