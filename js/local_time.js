// Local time by the guest's own zone. Emscripten would ask JavaScript's Date, which has the host's
// zone or none; here Python says by which offsets its clock goes (`py/zone.py`), and CPython's C
// library is answered by them.

/** Coordinated time, of which nothing else was said. */
const UTC = '{"starts":[],"offsets":[0],"summer":[0],"names":["UTC","UTC"],"timezone":0}';

/** Where `struct tm` has its fields, in words. */
const SECOND = 0;
const MINUTE = 1;
const HOUR = 2;
const DAY = 3;
const MONTH = 4;
const YEAR = 5;
const WEEKDAY = 6;
const YEAR_DAY = 7;
const IS_SUMMER = 8;
const OFFSET = 9;

const DAY_SECONDS = 86400;
const SUMMER_SECONDS = 3600;
const MAX_NAME = 16;

export class LocalTime {
  #zone = JSON.parse(UTC);
  #Module;
  /** Where the C library has the zone's offset, whether it has summer time, and its names. */
  places;

  constructor(places) {
    this.places = places;
  }

  hook(Module, env) {
    this.#Module = Module;
    env._tzset_js = (...places) => {
      this.places = places;
      this.#tell();
    };
    env._gmtime_js = (time, tm) => this.#fill(Number(time), tm, 0, 0);
    env._localtime_js = (time, tm) => this.#split(Number(time), tm);
    env._mktime_js = (tm) => BigInt(this.#join(tm));
  }

  /**
   * Sets the zone: `starts` are the seconds at which its offsets change, `offsets` and `summer` say
   * what is so before the first and from each of them on.
   */
  set(zone) {
    this.#zone = JSON.parse(zone);
    this.#tell();
  }

  /** What a saved session has of it: the memory has the rest. */
  save() {
    return { zone: this.#zone, places: this.places };
  }

  restore({ zone, places }) {
    this.#zone = zone;
    this.places = places;
  }

  #tell() {
    if (this.places === undefined) return; // the C library asks when it first needs it
    const { HEAP8, HEAP32 } = this.#Module;
    const { names, timezone } = this.#zone;
    HEAP32[this.places[0] >>> 2] = timezone;
    HEAP32[this.places[1] >>> 2] = Number(names[0] !== names[1]);
    for (let which = 0; which < 2; which++) {
      const at = this.places[2 + which] >>> 0;
      const name = names[which].slice(0, MAX_NAME);
      for (let i = 0; i <= name.length; i++) HEAP8[at + i] = name.charCodeAt(i) || 0;
    }
  }

  /** Which period a time falls into. */
  #period(time) {
    const { starts } = this.#zone;
    let low = 0;
    let high = starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (starts[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #split(time, tm) {
    const period = this.#period(time);
    this.#fill(time, tm, this.#zone.offsets[period], this.#zone.summer[period]);
  }

  #fill(time, tm, offset, isSummer) {
    const fields = this.#Module.HEAP32.subarray(tm >>> 2, (tm >>> 2) + OFFSET + 1);
    const date = new Date((time + offset) * 1000);
    fields[SECOND] = date.getUTCSeconds();
    fields[MINUTE] = date.getUTCMinutes();
    fields[HOUR] = date.getUTCHours();
    fields[DAY] = date.getUTCDate();
    fields[MONTH] = date.getUTCMonth();
    fields[YEAR] = date.getUTCFullYear() - 1900;
    fields[WEEKDAY] = date.getUTCDay();
    const first = new Date(date).setUTCMonth(0, 1);
    fields[YEAR_DAY] = Math.round((date.getTime() - first) / (DAY_SECONDS * 1000));
    fields[IS_SUMMER] = isSummer;
    fields[OFFSET] = offset;
  }

  /** The time of local fields, which are made regular; -1 if there is none. */
  #join(tm) {
    const at = tm >>> 2;
    const fields = this.#Module.HEAP32.subarray(at, at + OFFSET + 1);
    const date = new Date(0);
    date.setUTCFullYear(fields[YEAR] + 1900, fields[MONTH], fields[DAY]);
    date.setUTCHours(fields[HOUR], fields[MINUTE], fields[SECOND]);
    const local = date.getTime() / 1000;
    if (Number.isNaN(local)) return -1;
    const time = this.#unlocalized(local, fields[IS_SUMMER]);
    this.#split(time, tm);
    return time;
  }

  /**
   * The time at which clocks show `local`: at the second of two if that alone has `summer` as it is
   * to be.
   */
  #unlocalized(local, summer) {
    const { offsets, summer: isSummer } = this.#zone;
    const before = this.#period(local - DAY_SECONDS);
    const after = this.#period(local + DAY_SECONDS);
    const found = [];
    for (let period = before; period <= after; period++) {
      const time = local - offsets[period];
      if (this.#period(time) === period) found.push(period);
    }
    const isWanted = (period) => summer < 0 || isSummer[period] === Number(summer > 0);
    let period = found.find(isWanted);
    if (period === undefined && summer >= 0) {
      // Said to be of a period that it is not of: the clock of the nearest one such is meant.
      for (let near = 1; period === undefined && near <= offsets.length; near++) {
        period = [after - near + 1, before - near, after + near].find(
          (other) => other >= 0 && other < offsets.length && isWanted(other),
        );
      }
    }
    const offset = offsets[period ?? found[0] ?? before];
    // In a zone without summer time, clocks would be an hour ahead in it.
    return local - offset - (period === undefined && summer > 0 ? SUMMER_SECONDS : 0);
  }
}
