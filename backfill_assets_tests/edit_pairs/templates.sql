-- Queries over all clauses, one a line, with places where an edit puts one text for another:
-- [[one ;; another ;; ...]]. The first text is the one that a person edits. Tables: data.py.

-- projections:
SELECT k, x[[ ;; , y ;; , x + y AS c ;; , y AS c, n AS d ;; , NULL AS c]], n FROM e
SELECT k, [[x ;; x + 1 ;; y ;; -x ;; x * 1 ;; (x) ;; CAST(x AS BIGINT) ;; 1]] AS b, [[n ;; n AS m ;; N ;; n + 1 AS n]] FROM e
SELECT [[k, x, y ;; x, k, y ;; y, x, k ;; k, y ;; k, x, y, n]] FROM e
SELECT x + 1 AS b, [[b * 2 ;; b * 3 ;; x * 2 ;; b]] AS c[[ ;; , c + 1 AS d]] FROM e
SELECT [[x + 1 ;; x + 2 ;; y]] AS x, x * 2 AS c[[ ;; , y AS d]] FROM e
SELECT [[* ;; e.* ;; k, x ;; *, x + y AS c ;; * EXCEPT (y)]] FROM (SELECT k, x, y FROM e) AS e
SELECT [[k ;; K ;; `k` ;; e.k ;; e.`k` ;; E.k ;; k AS k ;; k AS K]], x FROM [[e ;; E ;; `e`]]

-- stars:
SELECT * FROM (SELECT k, x[[ ;; , y ;; , n AS w2 ;; + 1 AS x]] FROM e) a JOIN (SELECT k, w FROM f) b USING (k)
SELECT a.*, b.w FROM (SELECT k, x[[ ;; , y ;; , n AS y]] FROM e) a JOIN f b ON a.k = b.k
SELECT COUNT([[* ;; c.x ;; 1]]) AS n, COUNT(DISTINCT *) AS d FROM (SELECT x[[ ;; , y ;; , n]] FROM e) c
SELECT x, TO_JSON(STRUCT(*)) AS j, HASH(*) AS h FROM (SELECT x[[ ;; , y ;; , n ;; , id AS X2]] FROM e)
SELECT *, COUNT(*) AS c[[ ;; , MAX(k) AS m]] FROM (SELECT k[[ ;; , x ;; , y AS x]] FROM e) GROUP BY ALL
WITH c AS (SELECT k, x[[ ;; , y ;; + 1 AS x]] FROM e) SELECT *, COUNT(*) AS c FROM c GROUP BY ALL
SELECT * FROM (SELECT k, id, [[x ;; -x ;; y]] AS b FROM e) ORDER BY [[3, 2 ;; b, id ;; ALL]] LIMIT [[4 ;; 3]]
SELECT k, id FROM (SELECT * FROM (SELECT k, id, [[x ;; -x ;; y]] AS b[[ ;; , n]] FROM e) ORDER BY [[3, 2 ;; b, id]] LIMIT 4)
SELECT k FROM e WHERE EXISTS (SELECT * FROM (SELECT k AS fk[[ ;; , w ;; , n AS x]] FROM f) g WHERE g.fk = e.k AND x > 1)
SELECT id, x FROM (SELECT [[a.* ;; b.* ;; a.*, b.x AS x2]] FROM e a JOIN (SELECT id, y AS x FROM e) b ON a.id = b.id)

-- meanings:
SELECT x AS b, y AS x, id FROM e ORDER BY [[1 ;; x ;; b ;; 2]] LIMIT [[3 ;; 4]]
SELECT x AS b, y AS x, COUNT(*) AS c FROM e GROUP BY [[1, 2 ;; x, y ;; b, y ;; y, x]]
SELECT [[TRUNC(ds, 'MM') ;; TRUNC(ds, 'YEAR') ;; ds]] AS ds, COUNT(*) AS c FROM e GROUP BY [[ds ;; 1]]
SELECT k, SUM(x) AS s[[ ;; , MAX(y) AS x ;; , MAX(y) AS z]] FROM e GROUP BY k [[HAVING SUM(x) > 3 ;; ORDER BY s, k LIMIT 2 ;; HAVING s > 3]]
SELECT id[[ ;; , 9 AS w ;; , y AS z ;; , n AS k]], (SELECT MAX(w) FROM f WHERE f.k = e.k) AS m FROM e
SELECT e.id, g.b FROM e, LATERAL (SELECT w[[ ;; , 9 AS x ;; , n]], x + 1 AS b FROM f WHERE f.k = e.k) g
SELECT id[[ ;; , y AS z ;; , 9 AS y]], y + 1 AS b, x FROM e WHERE [[y > 0 ;; y >= 0]]
SELECT id, TIMESTAMPDIFF([[hour ;; HOUR ;; minute]], t, [[TIMESTAMP '2025-01-03 00:00:00' ;; TIMESTAMP '2025-01-04 00:00:00']]) AS hour, hour / 24 AS c FROM e
SELECT DATE_ADD(month, [[1 ;; n]], ds) AS month, COUNT(*) AS c FROM e GROUP BY month
WITH c AS (SELECT id, [[x ;; y]] AS session_user FROM e) SELECT id, session_user AS v FROM c
SELECT [[y AS x ;; y AS x, id]], e.x + 1 AS c, [[x ;; e.x]] * 2 AS d FROM e
SELECT k, COUNT(*) AS c, SUM(x) AS s[[ ;; , MIN(id) AS i ;; , MAX(ds) AS i ;; , AVG(y) AS i ;; , COUNT_IF(y > 1) AS i ;; , MEDIAN(y) AS i ;; , SUM(y) FILTER (WHERE n = 1) AS i ;; , BOOL_OR(x > 1) AS i ;; , ANY(x > 1) AS i ;; , k AS i ;; , 'z' AS i]] FROM e GROUP BY k
SELECT id, x, y[[ ;; , n ;; , x + y AS i ;; , UPPER(s) AS i ;; , arr AS i ;; , st AS i ;; , st.A AS i ;; , mp['a'] AS i ;; , CASE WHEN x > 1 THEN 1 END AS i ;; , DATE_FORMAT(t, 'yyyy') AS i ;; , TRANSFORM(arr, q -> q + 1) AS i ;; , NULL AS i ;; , CAST(x AS DECIMAL(9, 2)) AS i ;; , STRUCT(x, y) AS i ;; , RANK() OVER (ORDER BY x) AS i ;; , COUNT(*) OVER () AS i]] FROM e[[ ;;  WHERE x > 1]]
SELECT DISTINCT ON_ AS k FROM (SELECT k AS ON_[[ ;; , x]] FROM e)
SELECT st.A AS v, a.id FROM (SELECT id, k, [[st ;; NAMED_STRUCT('A', x + 1) AS st]] FROM e) a JOIN (SELECT k AS fk FROM f) st ON a.k = st.fk
SELECT id, y AS A, [[st.A ;; A ;; st.st.A]] AS v FROM e AS st
SELECT e.id, st.A AS v FROM e CROSS JOIN (SELECT w[[ ;; , n AS A]] FROM f) st

-- case:
SELECT k, CASE WHEN x [[> ;; >= ;; < ;; <> ;; != ;; <=> ;; =]] [[1 ;; 2 ;; y]] THEN 'hi' [[ELSE 'lo' ;;  ;; ELSE NULL ;; WHEN y = 1 THEN 'mid']] END AS c, x FROM e
SELECT k, [[COALESCE(x, 0) ;; COALESCE(x, 1) ;; NVL(x, 0) ;; IFNULL(x, 0) ;; IF(x IS NULL, 0, x) ;; NULLIF(x, 0) ;; COALESCE(x, y, 0) ;; GREATEST(x, 0)]] AS c, y FROM e

-- windows:
SELECT k, x, [[RANK() ;; DENSE_RANK() ;; ROW_NUMBER() ;; COUNT(*) ;; SUM(x)]] OVER (PARTITION BY [[k ;; n ;; k, n]] ORDER BY x[[ ;;  DESC ;;  NULLS LAST ;;  ASC ;;  NULLS FIRST ;; , y]]) AS r FROM e
SELECT k, x, RANK() OVER (ORDER BY x) AS r[[ ;; , SUM(y) OVER (PARTITION BY k) AS s ;; , LAG(x) OVER (ORDER BY x, y) AS s ;; , ROW_NUMBER() OVER (ORDER BY y DESC) AS s]] FROM e
SELECT id, ROW_NUMBER() OVER (ORDER BY k) AS r[[ ;; , ROW_NUMBER() OVER (ORDER BY x DESC) AS s ;; , x ;; , RANK() OVER (PARTITION BY k ORDER BY y) AS s ;; , SUM(x) OVER () AS s]] FROM e
SELECT id, SUM(x) OVER (ORDER BY id [[ROWS BETWEEN 1 PRECEDING AND CURRENT ROW ;; ROWS BETWEEN 2 PRECEDING AND CURRENT ROW ;; RANGE BETWEEN 1 PRECEDING AND CURRENT ROW ;; ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW]]) AS s, x FROM e
SELECT id, x, SUM(x) OVER w AS s, [[MAX(y) ;; MIN(y)]] OVER w AS t FROM e WINDOW w AS (PARTITION BY [[k ;; n]] [[ ;; ORDER BY x ;; ORDER BY x DESC]])

-- filters:
SELECT k, x, y FROM e WHERE [[x > 1 ;; x >= 1 ;; (x > 1) ;; 1 = 1 AND x > 1 ;; x > 1 AND TRUE ;; NOT x <= 1 ;; x > 1 OR y = 1 ;; 1 < x ;; x > 1 AND y IS NOT NULL ;; TRUE]]
SELECT k, x FROM e WHERE [[k IN ('a', 'b') ;; k IN ('a') ;; k NOT IN ('a', 'b') ;; NOT k IN ('a', 'b') ;; k IN ('b', 'a') ;; k LIKE 'a%' ;; k = 'a' OR k = 'b' ;; k BETWEEN 'a' AND 'b']] AND [[y > 0 ;; y >= 0 ;; (y > 0) ;; y > 0 AND (x > 0 OR n > 0) ;; y > 0 AND x > 0 OR n > 0 ;; y IS DISTINCT FROM 0]]
SELECT k, x FROM e WHERE [[(x = 1 OR y = 1) AND n = 1 ;; x = 1 OR y = 1 AND n = 1 ;; x = 1 OR (y = 1 AND n = 1) ;; ((x = 1 OR y = 1)) AND (n = 1)]]
SELECT [[k ;; k, x ;; x]] FROM e WHERE [[EXISTS (SELECT 1 FROM f WHERE f.k = e.k) ;; EXISTS (SELECT w FROM f WHERE f.k = e.k) ;; NOT EXISTS (SELECT 1 FROM f WHERE f.k = e.k) ;; k IN (SELECT k FROM f) ;; k NOT IN (SELECT k FROM f) ;; k IN (SELECT k FROM f WHERE w > 1)]]

-- grouping:
SELECT [[k, n ;; n, k ;; k]], SUM(x) AS s[[ ;; , MAX(y) AS m ;; , COUNT(*) AS m ;; , n + SUM(x) AS m ;; , COUNT(DISTINCT y) AS m]] FROM e GROUP BY [[ALL ;; k, n ;; n, k]]
SELECT [[k, n ;; n, k ;; k, n, SUM(y) AS t ;; k, 7 AS t, n]], SUM(x) AS s FROM e GROUP BY [[1, 2 ;; k, n ;; 2, 1]]
SELECT [[k, n ;; n, k ;; k, n AS z]], SUM(x) AS s[[ ;; , GROUPING_ID() AS g]] FROM e GROUP BY [[ROLLUP (1, 2) ;; ROLLUP (k, n) ;; CUBE (1, 2) ;; GROUPING SETS ((1), (1, 2)) ;; GROUPING SETS ((1, 2), ()) ;; 1, 2 WITH ROLLUP ;; 1, 2]]
SELECT k, [[SUM(x) ;; SUM(y) ;; AVG(x) ;; COUNT(x) ;; COUNT(*) ;; SUM(DISTINCT x) ;; SUM(x) FILTER (WHERE y > 0) ;; MAX(x)]] AS s, MIN(y) AS m FROM e GROUP BY k[[ ;; , n ;;  HAVING COUNT(*) > 1 ;;  HAVING s > 1 ;;  HAVING m > 0]]
SELECT [[TRUNC(ds, 'MM') ;; ds ;; TRUNC(ds, 'YEAR')]] AS d, COUNT(*) AS c[[ ;; , SUM(x) AS s]] FROM e GROUP BY [[d ;; 1 ;; ds]]
SELECT [[COUNT(*) AS c ;; SUM(x) AS c ;; COUNT(*) AS c, SUM(x) AS s ;; 1 AS c ;; MEDIAN(x) AS c, 1 AS d]] FROM e[[ ;;  WHERE FALSE ;;  HAVING COUNT(*) > 0]]
SELECT k, FIRST(x) AS f[[ ;; , MAX(s) AS m ;; , COUNT(DISTINCT x) AS m ;; , SUM(x) AS m ;; , COLLECT_LIST(x) AS m]] FROM e GROUP BY k
SELECT k, [[MAX_BY(x, id) ;; MAX_BY(y, id) ;; MIN_BY(x, id) ;; PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) ;; PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x) ;; PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY x DESC) ;; LISTAGG(s) WITHIN GROUP (ORDER BY s) ;; LISTAGG(s, ',') WITHIN GROUP (ORDER BY s)]] AS m, SUM(x) AS t FROM e GROUP BY k

-- qualify:
SELECT [[ ;; DISTINCT]] k, x[[ ;; , y ;; , RANK() OVER (ORDER BY y) AS q]] FROM e QUALIFY [[RANK() ;; ROW_NUMBER()]] OVER (PARTITION BY k ORDER BY [[x ;; x DESC]]) [[= 1 ;; <= 2]]
SELECT k, x, RANK() OVER (ORDER BY x) AS r[[ ;; , y]] FROM e QUALIFY r [[< 4 ;; < 5]] ORDER BY x, k, y, id [[ ;; LIMIT 2 ;; LIMIT 2 OFFSET 1]]

-- joins:
SELECT e.k, e.x, f.w FROM e [[JOIN ;; INNER JOIN ;; LEFT JOIN ;; LEFT OUTER JOIN ;; RIGHT JOIN ;; FULL OUTER JOIN]] f ON e.k = f.k[[ ;;  AND f.w > 1 ;;  AND e.x > 1]]
SELECT e.id, e.x FROM e [[LEFT SEMI JOIN ;; LEFT ANTI JOIN ;; SEMI JOIN]] f ON e.k = f.k[[ ;;  AND f.w > 1]]
SELECT [[k ;; k, w ;; e.k ;; f.k AS k]], x FROM e [[JOIN ;; LEFT JOIN ;; FULL JOIN]] f USING [[(k) ;; (k, n)]]
SELECT k, x FROM e NATURAL [[JOIN ;; LEFT JOIN]] (SELECT k[[ ;; , w ;; , n ;; , w AS x]] FROM f) g
SELECT a.k, a.x, b.w[[ ;; , b.v]] FROM (SELECT k, x[[ ;; , y ;; , n AS w ;; + 1 AS x]] FROM e) a [[CROSS JOIN ;; JOIN]] (SELECT w, [[w * 2 ;; w * 3 ;; n]] AS v FROM f) b[[ ;;  WHERE a.x < b.w]]
SELECT [[a.x ;; x]], a.w FROM (SELECT [[x ;; x + 1 AS x ;; y AS x]] FROM e) a CROSS JOIN (SELECT w FROM f) a
SELECT e.k, w FROM e, f WHERE [[e.k = f.k ;; e.n = f.n ;; e.k = f.k AND e.n = f.n]]
SELECT e.id, g.w FROM e [[LEFT JOIN LATERAL ;; JOIN LATERAL]] (SELECT [[MAX ;; MIN]](w) AS w[[ ;; , 7 AS x]] FROM f WHERE f.k = e.k) g ON g.w > 0

-- sets:
SELECT k, [[x ;; x + 1 ;; y]] AS b FROM e [[UNION ALL ;; UNION ;; UNION DISTINCT ;; EXCEPT ;; EXCEPT ALL ;; MINUS ;; INTERSECT ;; INTERSECT ALL]] SELECT k, [[w ;; w + 1 ;; n]] FROM f
SELECT [[k ;; k, x ;; k, 1 AS x]] FROM e UNION ALL SELECT k FROM f
SELECT k, [[x ;; x AS z ;; 1 AS x]] FROM e UNION ALL SELECT k, [[w ;; 1 ;; n]] FROM f
SELECT k, b FROM ([[SELECT k, x AS b FROM e UNION ALL SELECT k, w FROM f ;; SELECT k, x AS b, y AS c FROM e UNION ALL SELECT k, w, n FROM f ;; SELECT k, x AS b, y AS c FROM e UNION SELECT k, w, n FROM f ;; SELECT k, y AS b FROM e UNION ALL SELECT k, w FROM f ;; SELECT n AS k, x AS b FROM e UNION ALL SELECT n, w FROM f]])
SELECT k, x FROM e UNION ALL SELECT k, w FROM f [[ ;; ORDER BY k, x ;; ORDER BY k, x LIMIT 3 ;; ORDER BY x, k LIMIT 3 ;; ORDER BY 2, 1 LIMIT 3]]
SELECT k FROM e UNION ALL SELECT k FROM f [[INTERSECT ;; EXCEPT ;; UNION]] SELECT k FROM e WHERE x > 1

-- distinct:
SELECT [[DISTINCT ;;  ;; ALL]] k[[ ;; , x ;; , n]] FROM e[[ ;;  WHERE x > 1]]
SELECT k, COUNT(*) AS c FROM (SELECT DISTINCT k, x[[ ;; , y ;; + 1 AS x]] FROM e) GROUP BY k
SELECT COUNT([[DISTINCT x ;; x ;; DISTINCT x, y ;; * ;; 1]]) AS c, SUM([[x ;; DISTINCT x]]) AS s FROM e

-- order:
SELECT k, x, id[[ ;; , y ;; , -x AS m]] FROM e ORDER BY [[x, id ;; x DESC, id ;; 2, 3 ;; x NULLS LAST, id ;; ALL ;; k, id]] [[LIMIT 4 ;; LIMIT 5 ;; LIMIT 4 OFFSET 2 ;;  ;; OFFSET 3]]
SELECT [[k, id ;; -id AS m, k, id ;; id, k]] FROM e [[ORDER BY ALL LIMIT 3 ;; SORT BY 1 LIMIT 3 ;; ORDER BY 1 LIMIT 3 ;; ORDER BY 2 DESC LIMIT 3]]
SELECT [[k, x ;; x, k ;; k, x, y]] FROM e [[DISTRIBUTE BY k SORT BY x ;; CLUSTER BY k ;; SORT BY x ;; ORDER BY k]]
SELECT m FROM (SELECT a.x, b.x, a.id AS m FROM e a JOIN e b ON a.id = b.id + 1 ORDER BY [[1 ;; 2 ;; 2 DESC]] LIMIT 3)
SELECT k, x FROM e [[ORDER BY id ;;  ;; ORDER BY id DESC]] LIMIT [[3 ;; 4]]
SELECT id, x[[ ;; , RANK() OVER (ORDER BY y DESC) AS r ;; , (SELECT MAX(w) FROM f) AS r ;; , y]] FROM e LIMIT 4
SELECT MAX(id) AS m FROM (SELECT id, x[[ ;; , y]] FROM e ORDER BY [[x ;; y ;; id]] LIMIT 3)
SELECT id, [[x ;; -x]] AS b FROM e DISTRIBUTE BY b[[ ;;  LIMIT 3]]
SELECT [[x ;; -x]] AS x, id FROM e CLUSTER BY [[1 ;; x]][[ ;;  LIMIT 3]]

-- hints:
SELECT [[ ;; /*+ REPARTITION(3, y) */ ;; /*+ COALESCE(1) */]] id, x[[ ;; , y]] FROM e[[ ;;  LIMIT 3]]
SELECT [[ ;; /*+ BROADCAST(e) */ ;; /*+ MERGE(e, f) */]] e.id, f.w FROM e JOIN f ON e.k = f.k[[ ;;  LIMIT 3]]
SELECT k, COLLECT_LIST(x) AS v, MAX(x) AS m FROM (SELECT [[ ;; /*+ REPARTITION_BY_RANGE(3, y) */]] k, x, y FROM e) GROUP BY k

-- samples:
SELECT id, x[[ ;; , y]] FROM e TABLESAMPLE ([[50 PERCENT ;; 80 PERCENT ;; BUCKET 1 OUT OF 2]]) REPEATABLE ([[7 ;; 8]])

-- laterals:
SELECT id, v FROM e LATERAL VIEW [[ ;; OUTER]] [[EXPLODE(arr) ;; EXPLODE(ARRAY(x, y)) ;; EXPLODE(ARRAY(x))]] t AS v[[ ;;  WHERE v > 1]]
SELECT id, x[[ ;; , EXPLODE(arr) AS v ;; , EXPLODE_OUTER(arr) AS v ;; , SIZE(arr) AS v ;; , arr[0] AS v]] FROM e
SELECT id, key AS q, value AS v[[ ;; , x]] FROM e LATERAL VIEW [[EXPLODE(mp) ;; EXPLODE(MAP('a', x))]] t AS key, value
SELECT id, p, v FROM e, LATERAL [[POSEXPLODE(arr) ;; POSEXPLODE_OUTER(arr)]] AS t(p, v)

-- pivots:
SELECT * FROM (SELECT k, n, x[[ ;; , y ;; + 1 AS x]] FROM e) PIVOT ([[SUM ;; MAX]](x) [[ ;; AS q]] FOR n IN ([[1, 2 ;; 2, 1 ;; 1 AS one, 2 AS two]]))
SELECT * FROM (SELECT k, n, x[[ ;; , id ;; + 1 AS x]] FROM e) a [[JOIN ;; LEFT JOIN]] (SELECT k AS j, w[[ ;; , 1 AS one]] FROM f) b ON a.k = b.j PIVOT (SUM(x) FOR n IN (1, 2))
SELECT w, `1` AS v FROM (SELECT k, n, x[[ ;; , id]] FROM e), (SELECT w FROM f) PIVOT (SUM(x) FOR n IN (1, 2))
SELECT * FROM (SELECT id, x, y[[ ;; , n]] FROM e) UNPIVOT [[ ;; INCLUDE NULLS]] (v FOR c IN ([[x, y ;; y, x ;; x AS xx, y]]))

-- ctes:
WITH c AS (SELECT k, x[[ ;; , y ;; + 1 AS x ;; , RANK() OVER (ORDER BY x) AS r]] FROM e[[ ;;  WHERE x > 1]]) SELECT k, SUM(x) AS s FROM c GROUP BY k
WITH c AS (SELECT 1 AS b), d AS ([[SELECT b FROM c ;; WITH c AS (SELECT 2 AS b) SELECT b FROM c ;; WITH g AS (SELECT 2 AS b) SELECT b FROM c]]) SELECT b FROM d
WITH c AS (SELECT x AS b FROM e) SELECT b FROM ([[SELECT b FROM c ;; WITH c AS (SELECT w AS b FROM f) SELECT b FROM c ;; WITH c AS (SELECT b FROM c) SELECT b FROM c]])
WITH [[c AS (SELECT k, x FROM e), d AS (SELECT k, x AS z FROM c) ;; c AS (SELECT k, x, y FROM e), d AS (SELECT k, x AS z FROM c) ;; c AS (SELECT k, x FROM e), u AS (SELECT 1 AS o), d AS (SELECT k, x AS z FROM c) ;; c AS (SELECT k, x + 1 AS x FROM e), d AS (SELECT k, x AS z FROM c)]] SELECT d.k, d.z, c.x FROM c JOIN d USING (k)
[[WITH d AS (WITH c AS (SELECT x AS b FROM e) SELECT b FROM c) SELECT b FROM d ;; WITH c AS (SELECT y AS b FROM e), d AS (SELECT b FROM c) SELECT b FROM d ;; WITH c AS (SELECT x AS b FROM e), d AS (SELECT b FROM c) SELECT b FROM d]]
[[SELECT b FROM (WITH c AS (SELECT x AS b FROM e) SELECT b FROM c) ;; WITH c AS (SELECT y AS b FROM e) SELECT b FROM (SELECT b FROM c)]]
WITH c([[k, v ;; k, z ;; v, k]]) AS (SELECT k, x FROM e) SELECT [[* ;; c.*]] FROM c
WITH RECURSIVE c AS (SELECT 1 AS b UNION ALL SELECT b + [[1 ;; 2]] FROM c WHERE b < [[4 ;; 5]]) SELECT b[[ ;; , b * 2 AS d]] FROM c
WITH c AS (SELECT k, x FROM e), d AS (SELECT k, [[MAX(x) ;; MIN(x)]] AS m FROM c GROUP BY k) SELECT c.k, c.x, d.m, [[c.x - d.m ;; c.x + d.m ;; c.x]] AS g FROM c JOIN d ON c.k = d.k
WITH c AS (SELECT id, k, ROW_NUMBER() OVER (ORDER BY k) AS r[[ ;; , ROW_NUMBER() OVER (ORDER BY y DESC) AS q]] FROM e) SELECT id, r[[ ;; , r + 1 AS t]] FROM c
WITH c AS (SELECT id, k[[ ;; , ROW_NUMBER() OVER (ORDER BY y DESC, id) AS q]] FROM e) SELECT * FROM c[[ ;;  LIMIT 4]]

-- subqueries:
SELECT id, (SELECT [[MAX(w) ;; MIN(w) ;; COUNT(*)]] FROM f WHERE f.k = e.k[[ ;;  AND f.w > 1]]) AS m, x FROM e
SELECT id, (SELECT MAX(w)[[ ;;  + 1]] FROM f) AS w, w + 1 AS c[[ ;; , w * 2 AS d]] FROM e
SELECT id, x[[ ;; , (SELECT MAX(w) FROM f) AS m ;; , (SELECT COUNT(*) FROM f WHERE f.k = e.k) AS m]] FROM e[[ ;;  WHERE x > (SELECT MIN(w) FROM f)]]
SELECT k, x AS m FROM (SELECT k, CAST(x AS BIGINT) FROM (SELECT k, [[x ;; x + 1 AS x]] FROM e))
SELECT k, `max(x)` AS m FROM (SELECT k, MAX(x) FROM (SELECT k, [[x ;; x + 1 AS x]] FROM e) GROUP BY k)
SELECT id, `a[0].p` AS m FROM (SELECT id, a[0].p FROM (SELECT id, ARRAY(NAMED_STRUCT('p', [[x ;; y]])) AS a FROM e))
SELECT id FROM (SELECT id[[ ;; , CAST(id AS STRING)]], x FROM (SELECT id + 0 AS id, x FROM e) ORDER BY id DESC LIMIT 4)
SELECT k FROM (SELECT k[[ ;; , CAST(id AS STRING)]] FROM e ORDER BY id LIMIT 4)
SELECT k FROM (SELECT k[[ ;; , CAST(id AS STRING)]] FROM e GROUP BY k, id HAVING id < '11')
SELECT z.b[[ ;;  + 1]] AS v FROM e AS z(ds, id, k, n, a, b, s, t, arr, mp, st)
SELECT k, s FROM (SELECT k, SUM(x) AS s[[ ;; , MAX(y) AS m]] FROM e GROUP BY k[[ ;; , n]]) g[[ ;;  WHERE s > 2]]
WITH c AS (SELECT k[[ ;; , n ;; , NAMED_STRUCT('A', 0) AS st]] FROM f) SELECT id, [[(SELECT COUNT(*) FROM c NATURAL JOIN f) ;; (SELECT COUNT(*) FROM c WHERE c.k = e.k AND st.A > 1)]] AS m FROM e
SELECT id FROM e WHERE EXISTS (WITH g AS (SELECT w FROM f WHERE f.k = e.k) SELECT 1 FROM g WHERE g.w > [[1 ;; 2]])
WITH c AS (SELECT k, n, x[[ ;; , y ;; , id]] FROM e) SELECT id, (SELECT COUNT(*) FROM c PIVOT (SUM(x) FOR n IN (1, 2))) AS m FROM e

-- nested:
SELECT id, [[st.A ;; st.a ;; st.b ;; e.st.A]] AS v, [[arr[0] ;; arr[1] ;; ELEMENT_AT(arr, 1)]] AS w, [[mp['a'] ;; mp['b'] ;; mp['A']]] AS u FROM e
SELECT id, [[STRUCT(x, y) ;; STRUCT(X, y) ;; STRUCT(y, x) ;; STRUCT(x AS p, y) ;; NAMED_STRUCT('x', x, 'y', y) ;; NAMED_STRUCT('X', x, 'y', y)]] AS v FROM e
SELECT id, CAST(NAMED_STRUCT('p', x) AS STRUCT<[[a ;; A ;; b]]: [[INT ;; INTEGER ;; BIGINT]]>) AS v FROM e
SELECT id, TO_JSON(STRUCT([[x ;; X ;; x AS y ;; y]])) AS v, TRANSFORM(arr, [[q -> q + 1 ;; r -> r + 1 ;; q -> q + 2]]) AS w FROM e
SELECT id, TRANSFORM(arr, x -> x + [[e.x ;; x ;; e.y]]) AS v FROM e
SELECT id, TRANSFORM(arr, Q -> q + [[1 ;; 2]]) AS q, q[0] AS v FROM e
SELECT id, g.* FROM (SELECT id, [[STRUCT(x AS p) ;; STRUCT(x + 1 AS p) ;; STRUCT(x AS p, y AS q)]] AS g[[ ;; , n]] FROM e)
SELECT id, st[[ ;; .A]] AS v, [[MAP('a', x) ;; MAP('A', x)]] AS w, ARRAY([[x, y ;; y, x]]) AS u FROM e

-- casts:
SELECT id, CAST(x AS [[INT ;; INTEGER ;; BIGINT ;; LONG ;; STRING ;; DOUBLE ;; DECIMAL(9, 2) ;; NUMERIC(9, 2)]]) AS v, [[x ;; INT(x) ;; x::INT ;; CAST(x AS INT) ;; TRY_CAST(x AS INT)]] AS w FROM e
SELECT id, CAST(t AS [[TIMESTAMP ;; DATE ;; STRING ;; TIMESTAMP_NTZ]]) AS v, [[DATE_FORMAT(t, 'yyyy') ;; DATE_FORMAT(t, 'YYYY') ;; YEAR(t) ;; DATE_FORMAT(ds, 'yyyy')]] AS w FROM e
SELECT id, [[TO_DATE(s2, 'yyyy-MM-dd') ;; TO_DATE(s2) ;; CAST(s2 AS DATE) ;; TO_DATE(s2, 'yyyy-dd-MM')]] AS v FROM (SELECT id, '2024-01-02' AS s2 FROM e)
SELECT id, ds [[+ ;; -]] INTERVAL [[1 DAY ;; '1' DAY ;; 2 DAYS ;; '1 day' ;; 1 MONTH]] AS v, [[DATE '2024-01-01' ;; CAST('2024-01-01' AS DATE) ;; DATE '2024-01-02' ;; '2024-01-01']] AS w FROM e
SELECT id, t - INTERVAL [[1 DAY 2 HOURS ;; 1 DAY ;; 26 HOURS]] AS v, [[DATE_SUB(ds, 1) ;; DATE_ADD(ds, -1) ;; ds - 1]] AS w FROM e

-- literals:
SELECT id, [['a' ;; "a" ;; 'A' ;; 'a ' ;; 'O''Brien' ;; 'O\'Brien' ;; 'OBrien']] AS v, [[3 ;; 1e0 + 2 ;; 3L ;; 3.0 ;; 1 + 2 ;; CAST(3 AS BIGINT)]] AS w, [[x = 1 ;; x == 1 ;; x <=> 1 ;; NOT x <> 1]] AS u FROM e
SELECT id, [[FLOOR(LOG10(1000)) ;; FLOOR(LOG(10, 1000)) ;; 3]] AS v, [[SUBSTR(s, 1, 2) ;; SUBSTRING(s, 1, 2) ;; LEFT(s, 2) ;; SUBSTR(s, 2)]] AS w, [[x % 2 ;; MOD(x, 2) ;; x / 2 ;; x DIV 2]] AS u FROM e
SELECT id, TO_JSON(STRUCT(*)) AS v FROM (SELECT id, [[5L ;; CAST(5 AS BIGINT) ;; 5]] FROM e)
SELECT id, [[x + 0 ;; x ;; x * 1 ;; x - x ;; 0]] AS v, [[TRUE ;; 1 = 1 ;; x IS NULL OR x IS NOT NULL ;; x = x]] AS w FROM e
