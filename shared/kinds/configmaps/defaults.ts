import { withoutEmpty } from '../../kubernetes/normal-form.ts';
import { preparesWhole } from '../served-kind.ts';
import { CONFIG_MAPS } from './resource.ts';

export const prepareConfigMap = preparesWhole(CONFIG_MAPS, (object) => withoutEmpty(object, 'data', 'binaryData'));
